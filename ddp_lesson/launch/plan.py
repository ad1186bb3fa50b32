"""From options to everything that a launch needs: arguments, environment, the command to show."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from . import client
from .errors import LaunchError
from .options import Options
from .places import root, working_folder

# ipykernel sets these for itself; a rank started from a shell does not have them.
KERNEL_ONLY = ("MPLBACKEND", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "PAGER", "GIT_PAGER", "JPY_PARENT_PID")
MOST_RANKS = 4


@dataclass
class Plan:
    """A launch that is about to happen.

    Attributes
    ----------
    argv : list of str
        What torchrun's main is given, without ``--log-dir``.
    env, agent_env : dict
        The environment of torchrun and its ranks, and the one that a warm agent must be born with.
    command : str
        The shell command to show.
    cold_because : str or None
        Why a warm launch is not possible; None when it is, or when a cold one was asked for.
    """

    argv: list[str]
    script: str
    nproc: int
    env: dict[str, str]
    agent_env: dict[str, str]
    command: str
    loopback: bool
    warm: bool
    cold_because: str | None = None
    notes: list[str] = field(default_factory=list)


def make(options: Options, changes: Mapping[str, str | None] | None = None) -> Plan:
    """Decide how to launch.

    Parameters
    ----------
    options : Options
        With a script.
    changes : mapping, optional
        Variables to set for this run; None removes one.

    Raises
    ------
    LaunchError
        When torch is missing or the script is, or when something cannot be handed to a process.
    """
    require_torch()
    script, here = str(options.script), working_folder()
    if os.path.isdir(script):
        raise LaunchError(f"{script} is a folder, not a script.")
    if not os.path.isfile(script):
        raise LaunchError(f"{script}: there is no such script (looked from {here}).")
    if any("\0" in arg for arg in options.args):
        raise LaunchError("An argument of the script holds a null character: no process can be given that.")
    changes = dict(changes or {})
    env = _base_env(changes)
    loopback = options.nodes == 1 and _local_endpoint(options)
    if loopback:
        _keep_sockets_local(env)
    nproc, gpus = _rank_count(options, env)
    plan = Plan([], script, nproc, env, env, "", loopback, warm=not options.cold)
    if 0 < gpus < nproc:
        # The only way to say "no GPU" to a script that asks torch itself.
        env["CUDA_VISIBLE_DEVICES"] = changes["CUDA_VISIBLE_DEVICES"] = ""
        plan.notes.append(
            f"{nproc} ranks but {gpus} GPU{'s' * (gpus > 1)}: NCCL refuses two ranks on one GPU, so this run uses gloo "
            "on the CPU, and the GPUs are hidden from it."
        )
    plan.argv = _argv(options, nproc, loopback)
    plan.command = _command(options, nproc, changes)
    plan.agent_env = agent_env(env, nproc)
    plan.cold_because = None if options.cold else _cold_because(options, env)
    if plan.cold_because:
        plan.warm = False
        plan.notes.append(f"Launched cold: {plan.cold_because}.")
    return plan


def require_torch() -> None:
    """Raise LaunchError where torch is missing."""
    if importlib.util.find_spec("torch") is None:
        raise LaunchError(
            f"torch is not installed in the Python that this runs in ({sys.executable}): pip install torch, or choose "
            "the kernel of the environment that has it."
        )


def default_agent_env() -> dict[str, str]:
    """The environment of the agent that a plain ``%%torchrun`` cell will ask for."""
    env = _base_env({})
    _keep_sockets_local(env)
    return agent_env(env, 2)


def agent_env(env: Mapping[str, str], nproc: int) -> dict[str, str]:
    """What an agent must be born with so that its children look as if started with `env`.

    torchrun sets OMP_NUM_THREADS=1 for more than one rank (torch/distributed/run.py, config_from_args); the OpenMP
    library reads it when it is loaded, which in a forked rank has happened already.
    """
    return {**env, "OMP_NUM_THREADS": env.get("OMP_NUM_THREADS", "1")} if nproc > 1 else dict(env)


def can_fork() -> bool:
    """True where a process with threads of native libraries may be forked safely: Linux."""
    return sys.platform == "linux"


def _base_env(changes: Mapping[str, str | None]) -> dict[str, str]:
    env = dict(os.environ)
    if "JPY_PARENT_PID" in env:
        for name in KERNEL_ONLY:
            env.pop(name, None)
    for name, value in changes.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in f"{name}{value}":
            raise LaunchError(f"env: {name!r}: {value!r} cannot be an environment variable.")
        env.pop(name, None)
        if value is not None:
            env[name] = str(value)
    return env


def _local_endpoint(options: Options) -> bool:
    host = (options.value("--rdzv-endpoint") or options.value("--master-addr") or "localhost").partition(":")[0]
    return host in ("localhost", "127.0.0.1")


def _keep_sockets_local(env: dict[str, str]) -> None:
    # gloo and NCCL listen on the address of the host name or of the first interface otherwise.
    names = [name for name, found in psutil.net_if_addrs().items() if any(a.address == "127.0.0.1" for a in found)]
    if names:
        env.setdefault("GLOO_SOCKET_IFNAME", names[0])
        env.setdefault("NCCL_SOCKET_IFNAME", names[0])


def _rank_count(options: Options, env: dict[str, str]) -> tuple[int, int]:
    """Ranks and GPUs."""
    gpus = _gpus(env)
    wish = options.nproc
    if wish is None:
        return (min(gpus, MOST_RANKS) if gpus >= 2 else 2), gpus
    if wish == "gpu" and not gpus:
        raise LaunchError("--nproc-per-node gpu: this machine has no GPU that torch can use; give a number.")
    if wish == "gpu" or (wish == "auto" and gpus):
        return gpus, gpus
    if wish in ("cpu", "auto"):
        return os.cpu_count() or 1, gpus
    return int(wish), gpus


def _gpus(env: Mapping[str, str]) -> int:
    if env.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return 0
    drivers = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
    if not any(os.path.exists(path) for path in drivers):
        return 0  # asked without importing torch
    agent = client.pool.start(agent_env(env, 2), take=True)
    try:
        return agent.devices()
    except client.AgentError:
        return 0
    finally:
        client.pool.give(agent)


def _argv(options: Options, nproc: int, loopback: bool) -> list[str]:
    argv = ["--nproc-per-node", str(nproc), "--redirects", "3", *options.torchrun]
    if loopback and options.value("--local-addr") is None:
        argv = ["--local-addr", "127.0.0.1", *argv]
    if options.value("--monitor-interval") is None:
        argv = ["--monitor-interval", "0.05", *argv]
    if options.value("--shutdown-timeout") is None:
        argv = ["--shutdown-timeout", "3", *argv]
    return argv


def _command(options: Options, nproc: int, changes: Mapping[str, str | None]) -> str:
    settings = [f"{name}={shlex.quote(str(value))}" for name, value in changes.items() if value is not None]
    removed = [word for name, value in changes.items() if value is None for word in ("-u", name)]
    words = [*launcher(), "--nproc-per-node", str(nproc), *options.torchrun, str(options.script), *options.args]
    return " ".join([*(["env", *removed] if removed else []), *settings, shlex.join(words)])


def launcher() -> list[str]:
    """How a shell reaches the torchrun of this Python: by name only where PATH leads to the same one."""
    home = Path(sys.executable).parent
    for name, words in (("torchrun", ["torchrun"]), ("python", ["python", "-m", "torch.distributed.run"])):
        found = shutil.which(name)
        if found and Path(found).parent == home:
            return words
    inside = Path(sys.executable).is_relative_to(root())
    return [os.path.relpath(sys.executable) if inside else sys.executable, "-m", "torch.distributed.run"]


def _cold_because(options: Options, env: Mapping[str, str]) -> str | None:
    if not can_fork():
        return f"forking a process that holds native threads is not safe on {sys.platform}"
    if "PYTHON_EXEC" in env:
        return "PYTHON_EXEC names another interpreter"
    if options.value("--numa-binding") is not None:
        return "--numa-binding starts the ranks through another program"
    return None
