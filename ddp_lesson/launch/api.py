"""`torchrun()`: launch a script and come back with a `Run`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import places, plan
from .client import Agent, AgentError, pool
from .errors import LaunchError
from .options import Options, parse, rank_count, seconds
from .run import Run
from .tree import MARK

STOP_S = 8.0
LOOK_S = 0.05
BLOCK = 4096


class Interrupted(KeyboardInterrupt):
    """A person stopped the run; `run` holds what it left."""

    def __init__(self, run: Run) -> None:
        when = f"was stopped after {run.wall_s:.1f} s" if run.stopped else "had ended when the interrupt came"
        super().__init__(f"{run.script} {when}.")
        self.run = run

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def torchrun(
    script: str | os.PathLike[str],
    *args: object,
    nproc_per_node: int | str | None = None,
    timeout: float | None = None,
    env: Mapping[str, str | None] | None = None,
    cold: bool = False,
    options: Sequence[str] = (),
    watch: Callable[[Run], None] | None = None,
) -> Run:
    """Launch `script` on real ranks with torchrun and wait for the end.

    Parameters
    ----------
    script : path
        A Python script, as the shell would be given it.
    *args : object
        The script's arguments.
    nproc_per_node : int or str, optional
        Ranks. One per GPU where there are two or more (at most 4), else 2.
    timeout : float, optional
        Seconds until the run is ended. None: no deadline.
    env : mapping, optional
        Variables to set for this run; None as a value removes one.
    cold : bool
        Start every process anew, as the shell command does (seconds instead of half a second).
    options : sequence of str
        More of torchrun's own options, such as ``["--max-restarts", "1"]``.
    watch : callable, optional
        Called about twenty times a second with the run as it stands.

    Returns
    -------
    Run
        Also when ranks failed: see ``run.ok`` and ``run.failure``.

    Raises
    ------
    LaunchError
        Bad input, or nothing could be launched: one sentence.
    Interrupted
        A KeyboardInterrupt, after all processes have been ended; its ``run`` holds what was left.
    """
    if isinstance(options, str):
        raise LaunchError(f"options={options!r}: give a list of words, such as {options.split()!r}.")
    wanted = parse([str(option) for option in options])
    if wanted.script is not None:
        raise LaunchError(f"options: {wanted.script} does not belong there; the script is the first argument.")
    wanted.script, wanted.args = os.fspath(script), [str(arg) for arg in args]
    wanted.cold = wanted.cold or cold
    if nproc_per_node is not None:
        wanted.nproc = rank_count(nproc_per_node)
    if timeout is not None:
        wanted.timeout = seconds(timeout)
    return launch(wanted, env, watch)


def launch(
    options: Options,
    env: Mapping[str, str | None] | None = None,
    watch: Callable[[Run], None] | None = None,
    text: bytes | None = None,
    notes: Sequence[str] = (),
) -> Run:
    """As `torchrun`, from options that are parsed already.

    Parameters
    ----------
    text : bytes, optional
        What was written as the script: another notebook may have written its own there a moment later.
    notes : sequence of str
        What the caller has to say about the run.
    """
    way = plan.make(options, env)
    if text is None:
        try:
            text = Path(way.script).read_bytes()
        except OSError as error:
            raise LaunchError(f"{way.script} cannot be read: {error.strerror}.") from None
    number, folder = places.new_run_folder(way.script)
    source = folder / Path(way.script).name
    try:
        source.write_bytes(text)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise LaunchError(places.cannot_write(folder, error)) from None
    info: dict[str, Any] = {
        "number": number,
        "command": way.command,
        "script": way.script,
        "args": options.args,
        "nproc": way.nproc,
        "cwd": os.getcwd(),
        "owner": os.getpid(),
        "started": time.time(),
        "timeout": options.timeout,
        "warm": way.warm,
        "notes": [*notes, *way.notes],
        "t0_ns": time.monotonic_ns(),
    }
    run = Run(folder, info)
    agent = None
    finished = interrupted = False
    try:
        agent = _agent(way, info)
        info["t0_ns"] = time.monotonic_ns()
        _save(folder, info)
        agent.order(_order(agent, options, way, folder, source, info["t0_ns"], env or {}))
        interrupted = _follow(agent, run, watch)
        finished = True
    except LaunchError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except AgentError:
        _cut_short(info)
        info["notes"].append("The agent that guarded the run was lost; what it had started was ended.")
    except KeyboardInterrupt:  # before the launch, or a second one while the run was being ended
        interrupted = True
        _cut_short(info, stopped=True)
    finally:
        if agent is None:
            pass
        elif not finished:
            pool.drop(agent)
        elif agent.kind == "guard":
            agent.close()
        else:
            pool.give(agent)
    try:
        if folder.is_dir():
            shutil.rmtree(folder / "finished", ignore_errors=True)
            _check_source(run, source)
            _save(folder, info)
        else:
            info["notes"].append("The run directory was removed while it ran: outputs and exit codes are lost.")
        places.prune(folder)
    except KeyboardInterrupt:  # a moment too late; the result is there
        interrupted = True
    run = Run(folder, info)
    if interrupted:
        raise Interrupted(run)
    return run


def _cut_short(info: dict[str, Any], **more: bool) -> None:
    info.update(returncode=None, wall_s=(time.monotonic_ns() - info["t0_ns"]) / 1e9, **more)


def _agent(way: plan.Plan, info: dict[str, Any]) -> Agent:
    if way.warm:
        agent = pool.start(way.agent_env, take=True)
        try:
            agent.ready()
            return agent
        except AgentError as error:
            pool.drop(agent)
            info["warm"] = way.warm = False
            info["notes"].append(f"Launched cold, since {error}.")
        except BaseException:
            pool.give(agent)
            raise
    agent = Agent("guard", way.env)
    try:
        agent.ready()
    except BaseException as error:
        agent.close()
        if isinstance(error, AgentError):
            raise LaunchError(f"No process could be started: {error}.") from None
        raise
    return agent


def _order(
    agent: Agent,
    options: Options,
    way: plan.Plan,
    folder: Path,
    source: Path,
    t0_ns: int,
    changes: Mapping[str, str | None],
) -> dict[str, Any]:
    ours = {MARK: agent.mark, "DDP_LESSON_RUN_DIR": str(folder), "DDP_LESSON_T0_NS": str(t0_ns)}
    env = {**way.env, **ours}
    for name, value in changes.items():
        if value is None:  # ours, too: without DDP_LESSON_RUN_DIR a script is on its own
            env.pop(name, None)
    return {
        "do": "run",
        "argv": ["--log-dir", str(folder / "logs"), *way.argv, way.script, *options.args],
        "env": env,
        "cwd": os.getcwd(),
        "run_dir": str(folder),
        "source": str(source),
        "t0_ns": t0_ns,
        "timeout": options.timeout,
        "loopback": way.loopback,
    }


def _follow(agent: Agent, run: Run, watch: Callable[[Run], None] | None) -> bool:
    """Wait for the end of the run and note it in ``run.info``. True when a person stopped it."""
    stops = 0
    while True:
        try:
            answer = agent.answer(LOOK_S if watch else 1.0)
            if answer is not None and answer["event"] == "ended":
                break
            if watch and not stops:
                watch(Run(run.path, run.info))
        except KeyboardInterrupt:
            stops += 1
            stopped = time.monotonic()
            agent.order({"do": "stop"})  # asked again, the agent kills at once
        if stops and time.monotonic() - stopped > STOP_S:
            raise AgentError("the agent did not end the run")
    run.info["notes"] += answer["notes"]
    run.info.update(
        returncode=answer["code"],
        wall_s=(answer["t_ns"] - run.info["t0_ns"]) / 1e9,
        timed_out=answer["reason"] == "timed out",
        stopped=answer["reason"] == "stopped",
    )
    return stops > 0


def _check_source(run: Run, source: Path) -> None:
    # A cold rank reads the script itself; another notebook may have written it in the meantime.
    try:
        changed = not run.warm and Path(run.info["script"]).read_bytes() != source.read_bytes()
    except OSError:
        return
    if changed:
        run.info["notes"].append(f"{run.script} was changed while it ran: the ranks may have read another version.")


def _save(folder: Path, info: dict[str, Any]) -> None:
    file, draft = folder / "run.json", folder / ".run.json"
    try:
        draft.write_text(json.dumps(info, indent=1), encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        info["notes"].append(places.cannot_write(folder, error))
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        # On a full disk the block that the file has takes a few more words.
        text = json.dumps(info, indent=1)
        if len(text) <= BLOCK:
            with contextlib.suppress(OSError), open(file, "r+", encoding="utf-8") as opened:
                opened.write(text)
                opened.truncate()
