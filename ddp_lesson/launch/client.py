"""The other end of an agent: starts it, gives it orders, survives it."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import tree

# Variables that native code, torch or a library below it reads when it is loaded: a warm agent serves only those that
# it was born with.
AT_LOAD = (
    "OMP_ MKL_ KMP_ GOMP_ GOTO_ OPENBLAS_ BLIS_ VECLIB_ NUMEXPR_ ATEN_ TORCH PYTORCH_ CUDA_ CUBLAS_ CUDNN_ NCCL_ GLOO_ "
    "NVIDIA_ HIP_ ROCR_ XPU_ ZE_ TRITON_ LD_ DYLD_ PYTHON MALLOC_ GLIBC_ LANG LC_ TZ HOME TMP TEMP PATH VIRTUAL_ENV "
    "ONEDNN_ DNNL_ MKLDNN_ KINETO_ LOGLEVEL AOT INDUCTOR_ PT2_ NPY_ NUMPY_ SYMPY_ MPMATH_ OPENSSL_ USER LOGNAME"
).split()
START_S = 120.0
IDLE_S = 15 * 60.0
MOST_IDLE = 2

_START = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
path = list(sys.path)
sys.path.append(sys.argv[2])
from ddp_lesson.launch.agent import main
sys.path.remove(sys.argv[2])
main(sys.argv[1], path, float(sys.argv[3]))
"""


class AgentError(RuntimeError):
    """The agent did not start or was lost; the text says what it printed last."""


class Agent:
    """One agent process.

    Parameters
    ----------
    kind : {"warm", "guard"}
    env : mapping
        Its whole environment.
    idle_s : float
        Seconds without an order after which it ends by itself.
    """

    def __init__(self, kind: str, env: Mapping[str, str], idle_s: float = IDLE_S) -> None:
        self.kind = kind
        self.key = at_load(env)
        self.mark = uuid.uuid4().hex
        self.busy = False
        self.used = time.monotonic()
        self.rest = b""
        self.is_ready = False
        self.rss = 0
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", _START, kind, str(Path(__file__).parents[2]), str(idle_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**env, tree.MARK: self.mark},
            start_new_session=True,  # Jupyter's interrupt goes to the kernel's group
        )

    @property
    def alive(self) -> bool:
        """False once the process has ended, also by itself after its idle time."""
        return self.process.poll() is None

    def ready(self, timeout: float = START_S) -> None:
        """Wait until it takes orders.

        Raises
        ------
        AgentError
            When it ends or stays silent instead.
        """
        end = time.monotonic() + timeout
        while not self.is_ready:
            answer = self.answer(max(0.0, end - time.monotonic()))
            if answer is None:
                raise AgentError(f"the agent was not ready after {timeout:.0f} s")

    def order(self, order: dict[str, Any]) -> None:
        """Send one order. A lost agent is noticed by `answer`."""
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def answer(self, timeout: float) -> dict[str, Any] | None:
        """The next answer, or None when there is none within `timeout` seconds.

        Raises
        ------
        AgentError
            When the agent is gone.
        """
        end = time.monotonic() + timeout
        while b"\n" not in self.rest:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not readable:
                return None
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                self.process.wait()
                raise AgentError(f"the agent ended (exit code {self.process.returncode}) {self._last_words()}")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        answer = json.loads(line)
        if answer["event"] == "ready":
            self.is_ready, self.rss = True, answer["rss"]
        return answer

    def devices(self) -> int:
        """Accelerators that a rank would see. Raises AgentError when the agent is gone."""
        self.ready()
        self.order({"do": "devices"})
        answer = self.answer(START_S)
        return answer["count"] if answer else 0

    def close(self, wait_s: float = 6.0) -> None:
        """End it and all below it."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        if not self.is_ready:
            self.process.kill()  # it imports torch, reads nothing and has started nothing
        try:
            self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            tree.end_marked(self.mark)
        self.process.stdout.close()
        self.log.close()

    def _last_words(self) -> str:
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return f"saying: {lines[-1]}" if lines else "without a word"


def at_load(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The part of an environment that must be there when a process is born."""
    return tuple(sorted((k, v) for k, v in env.items() if k.startswith(tuple(AT_LOAD))))


class Pool:
    """The warm agents of this process, one per environment, the longest unused ended first."""

    def __init__(self) -> None:
        self.agents: list[Agent] = []
        self.lock = threading.Lock()
        self.owner = os.getpid()
        atexit.register(self.close)

    def start(self, env: Mapping[str, str], take: bool = False) -> Agent:
        """An agent for this environment, new or idle, not waiting until it is ready.

        With `take` nobody else gets it until `give`.
        """
        with self.lock:
            self._forget_others()
            for agent in [agent for agent in self.agents if not agent.alive]:
                self.agents.remove(agent)
                agent.close()
            for agent in self.agents:
                if not agent.busy and agent.key == at_load(env):
                    break
            else:
                agent = Agent("warm", env)
                self.agents.append(agent)
            agent.used, agent.busy = time.monotonic(), take
            self._end_unused(MOST_IDLE - 1, besides=agent)
            return agent

    def give(self, agent: Agent) -> None:
        """Give an agent back."""
        with self.lock:
            agent.used = time.monotonic()
            agent.busy = False
            self._end_unused(MOST_IDLE)

    def _end_unused(self, keep: int, besides: Agent | None = None) -> None:
        idle = sorted((a for a in self.agents if not a.busy and a is not besides), key=lambda a: a.used)
        for old in idle[: max(0, len(idle) - keep)]:
            self.agents.remove(old)
            old.close()

    def drop(self, agent: Agent) -> None:
        """End an agent that is of no use any more, however often a person presses Ctrl-C meanwhile."""
        wait_s = 6.0
        while True:
            try:
                with self.lock:
                    if agent in self.agents:
                        self.agents.remove(agent)
                agent.close(wait_s)
                tree.end_marked(agent.mark)
                return
            except KeyboardInterrupt:
                wait_s = 0.0

    def close(self) -> None:
        """End all agents."""
        with self.lock:
            self._forget_others()
            agents, self.agents = self.agents, []
        for agent in agents:
            try:
                agent.process.stdin.close()
            except OSError:
                pass
        for agent in agents:
            self.drop(agent)

    def _forget_others(self) -> None:
        # A forked child of this process must not use, or end, its parent's agents.
        if os.getpid() != self.owner:
            self.agents, self.owner = [], os.getpid()


pool = Pool()
