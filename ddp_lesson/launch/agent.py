"""The agent: a process that starts launches, guards their process trees, and outlives nobody.

It reads orders from its standard input, one JSON object a line, and answers on its standard output. When the input
ends, whoever started it is gone, and it ends everything below it. A warm agent has torch imported and forks torchrun's
main and the ranks; a guard starts torchrun's main in a new interpreter. Neither makes a CUDA call, ever.

Orders: ``{"do": "run", …}``, ``{"do": "stop"}``, ``{"do": "devices"}``.
Answers: ``ready``, ``started``, ``ended``, ``devices``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
import weakref
from pathlib import Path
from typing import Any, NoReturn

import psutil

from . import fork_rank, torchrun_main, tree

STRAGGLER_S = 5.0
LAST_WORDS_S = 0.5

# What a first DDP script needs; each costs a cold rank a part of a second to import.
MODULES = (
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.run",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.distributed.optim",
)


class Agent:
    """See the module's text.

    Parameters
    ----------
    warm : bool
        Import torch and fork, or guard a cold launch.
    path : list of str
        ``sys.path`` for the ranks, without the script's folder.
    idle_s : float
        Seconds without an order after which it ends.
    """

    def __init__(self, warm: bool, path: list[str], idle_s: float) -> None:
        self.warm = warm
        self.path = path
        self.idle_s = idle_s
        self.launch: Launch | None = None
        self.rest = b""
        # Answers go to the old standard output; nothing that a library prints can mix with them.
        self.answers = os.dup(1)
        os.dup2(2, 1)
        os.set_blocking(0, False)
        self.parent = os.getppid()
        self.wake, wakeup = socket.socketpair()
        self.wake.setblocking(False)
        wakeup.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminated)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        self._wakeup = wakeup
        tree.become_subreaper()

    def serve(self) -> None:
        """Work until the input ends, or nobody has asked for anything for a while."""
        if self.warm:
            for name in MODULES:
                with contextlib.suppress(ModuleNotFoundError):  # torch itself is checked before an agent is started
                    __import__(name)
            # torch's operator libraries are taken down at exit, one by one; a forked rank has not made them.
            for entry in weakref.finalize._registry.values():
                entry.atexit = False
            gc.collect()
            gc.freeze()  # forked children share these pages as long as nobody writes to them
        self.say({"event": "ready", "rss": psutil.Process().memory_info().rss})
        last = time.monotonic()
        while True:
            busy = self.launch is not None
            waiting = [0, self.wake] + ([self.launch.channel] if busy and self.launch.channel else [])
            readable, _, _ = select.select(waiting, [], [], 0.1 if busy else min(5.0, self.idle_s))
            if self.wake in readable:
                with contextlib.suppress(BlockingIOError):
                    self.wake.recv(4096)
            if os.getppid() != self.parent or (0 in readable and not self.read_orders()):
                self.give_up()
            if self.launch is not None:
                self.launch.tick(self.launch.channel in readable)
                last = time.monotonic()
            elif 0 in readable:
                last = time.monotonic()
            elif time.monotonic() - last > self.idle_s:
                self.give_up()

    def read_orders(self) -> bool:
        """Take in orders; False at the end of the input."""
        try:
            data = os.read(0, 1 << 20)
        except BlockingIOError:
            return True
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["do"] == "run":
                self.launch = Launch(self, order)
            elif order["do"] == "stop" and self.launch is not None:
                self.launch.stop("stopped")
            elif order["do"] == "devices":
                self.say({"event": "devices", "count": self.count_devices()})
        return bool(data)

    def say(self, answer: dict[str, Any]) -> None:
        """Answer; nobody listening any more is seen at the end of the input."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.answers, json.dumps(answer).encode() + b"\n")

    def count_devices(self) -> int:
        """Accelerators that a new process sees, asked in a child: the agent itself never touches them."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            count = 0
            try:
                import torch

                if torch.accelerator.is_available():
                    count = torch.accelerator.device_count()
            finally:
                os.write(write, str(count).encode())
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            text = answer.read()
        os.waitpid(pid, 0)
        return int(text or 0)

    def give_up(self) -> NoReturn:
        """End everything below and leave."""
        with contextlib.suppress(Exception):
            for grace in (tree.GRACE_S, 0.5):
                tree.end(tree.descendants(), grace)
            if self.launch is not None:
                self.launch.close()
        os._exit(0)

    def _terminated(self, *_: object) -> None:
        self.give_up()


class Launch:
    """One torchrun and its ranks, from the order to the last process."""

    def __init__(self, agent: Agent, order: dict[str, Any]) -> None:
        self.agent = agent
        self.order = order
        self.run_dir = order["run_dir"]
        self.reason: str | None = None
        self.kill_at: float | None = None
        self.deadline = time.monotonic() + order["timeout"] if order["timeout"] else None
        self.notes: list[str] = []
        self.ranks: dict[int, dict[str, Any]] = {}  # orders by process id
        self.ended: dict[int, int] = {}
        self.stragglers: set[int] = set()
        self.channel: socket.socket | None = None
        self.rest = b""
        self.process: subprocess.Popen | None = None
        self.pid = self._fork() if agent.warm else self._start()
        agent.say({"event": "started", "pid": self.pid})

    def _config(self) -> dict[str, Any]:
        return {key: self.order[key] for key in ("argv", "loopback", "run_dir", "t0_ns")}

    def _start(self) -> int:
        with open(os.path.join(self.run_dir, "launcher.log"), "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "ddp_lesson.launch.torchrun_main", json.dumps(self._config())],
                env=self.order["env"],
                cwd=self.order["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: tree.die_with_parent(signal.SIGTERM),
            )
        return self.process.pid

    def _fork(self) -> int:
        ours, theirs = socket.socketpair()
        pid = fork_rank.fork()
        if pid == 0:
            code = 1
            try:
                ours.close()
                self._become_torchrun(theirs)
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 1
            except BaseException:
                traceback.print_exc()
            finally:
                with contextlib.suppress(Exception):  # a full disk
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)
        theirs.close()
        ours.setblocking(False)
        self.channel = ours
        return pid

    def _become_torchrun(self, channel: socket.socket) -> None:
        os.setsid()
        tree.die_with_parent()
        fork_rank._reset_signals()
        log = os.path.join(self.run_dir, "launcher.log")
        fork_rank._reset_files(log, log)
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, fork_rank._most_files())
        os.environ.clear()
        os.environ.update(self.order["env"])
        os.chdir(self.order["cwd"])
        sys.argv = ["torchrun", *self.order["argv"]]
        torchrun_main.run(self._config(), channel)

    def tick(self, channel_readable: bool) -> None:
        """Look at everything once: orders of torchrun, ended ranks, the deadline, the end."""
        if channel_readable:
            self._read_channel()
        self._note_ended()
        self._end_stragglers()
        now = time.monotonic()
        if self.deadline is not None and now > self.deadline and self.reason is None:
            self.stop("timed out")
        if self.kill_at is not None and now > self.kill_at:
            # torchrun a moment later: it notes how its ranks ended.
            spared = self.pid if now < self.kill_at + LAST_WORDS_S else None
            tree.send((p for p in tree.descendants() if p.pid != spared), signal.SIGKILL)
        code = self._torchrun_code()
        if code is not None:
            self._finish(code)

    def stop(self, reason: str) -> None:
        """Begin to end the run: TERM to every process now, KILL after the grace time; at once when asked again."""
        if self.reason is None:
            self.reason = reason
            tree.send(tree.descendants(), signal.SIGTERM)
            self.kill_at = time.monotonic() + tree.GRACE_S
        else:
            self.kill_at = time.monotonic()

    def _read_channel(self) -> None:
        try:
            data = self.channel.recv(1 << 20)
        except BlockingIOError:
            return
        except ConnectionResetError:  # torchrun has left without reading everything
            data = b""
        if not data:
            self.channel.close()
            self.channel = None
            return
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "reap" in said:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(said["reap"], os.WNOHANG)
            else:
                self._tell({"started": self._fork_rank(said)})

    def _fork_rank(self, order: dict[str, Any]) -> int:
        order |= {"path": self.agent.path, "source": self.order["source"]}
        order["finished"] = os.path.join(self.run_dir, "finished")
        read, write = os.pipe()
        pid = fork_rank.fork()
        if pid == 0:
            try:
                os.close(read)
                fork_rank.enter(order, write)
            except BaseException:
                with contextlib.suppress(Exception):
                    traceback.print_exc()
            finally:
                os._exit(1)
        os.close(write)
        os.read(read, 1)  # ends when the child leads its own group and can be signalled
        os.close(read)
        self.ranks[pid] = order
        return pid

    def _note_ended(self) -> None:
        for pid in self.ranks:
            if pid in self.ended:
                continue
            try:
                # The zombie stays until torchrun has seen the exit code.
                seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if seen is not None:
                self._note_exit(pid, seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status)

    def _note_exit(self, pid: int, code: int) -> None:
        if pid in self.stragglers:
            code = int(Path(self.run_dir, "finished", str(pid)).read_text() or 0)
        self.ended[pid] = code
        rank = self.ranks[pid]
        torchrun_main.note_exit(self.run_dir, self.order["t0_ns"], rank["env"], rank["local_rank"], pid, code)
        self._tell({"pid": pid, "exitcode": code})

    def _tell(self, what: dict[str, Any]) -> None:
        if self.channel is not None:
            with contextlib.suppress(OSError):
                self.channel.sendall(json.dumps(what).encode() + b"\n")

    def _end_stragglers(self) -> None:
        try:
            marks = list(os.scandir(os.path.join(self.run_dir, "finished")))
        except OSError:  # somebody has removed the run directory
            return
        for mark in marks:
            pid = int(mark.name)
            if pid not in self.ranks or pid in self.ended or pid in self.stragglers:
                continue
            if time.time() - mark.stat().st_mtime > STRAGGLER_S:
                self.stragglers.add(pid)
                rank = self.ranks[pid]["env"].get("RANK")
                self.notes.append(
                    f"Rank {rank} had finished its script but did not end; it was ended after {STRAGGLER_S:.0f} s."
                )
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _torchrun_code(self) -> int | None:
        if self.process is not None:
            return self.process.poll()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def _finish(self, code: int) -> None:
        left = tree.descendants()
        if left and self.reason is None and code >= 0:
            # Helpers of multiprocessing end by themselves, a moment after whom they helped.
            psutil.wait_procs(left, timeout=LAST_WORDS_S)
            left = tree.descendants()
        if left and self.reason is None:
            self._say_who_is_left(code)
        for grace in (tree.GRACE_S, 0.5):
            if left:
                codes = tree.end(left, max(0.0, min(grace, (self.kill_at or 1e18) - time.monotonic())))
                for pid in self.ranks.keys() & codes.keys() - self.ended.keys():
                    self._note_exit(pid, codes[pid])
            left = tree.descendants()
        self._note_ended()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        self.close()
        self.agent.launch = None
        self.agent.say(
            {
                "event": "ended",
                "code": code,
                "reason": self.reason,
                "notes": self.notes,
                "t_ns": time.monotonic_ns(),
            }
        )

    def _say_who_is_left(self, code: int) -> None:
        if code < 0:
            self.notes.append(f"torchrun itself was ended by {signal.Signals(-code).name}; its ranks were ended, too.")
        else:
            self.notes.append("Processes that the ranks had started and left behind were ended.")

    def close(self) -> None:
        """Let go of the line to torchrun."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None


def main(kind: str, path: list[str], idle_s: float) -> None:
    """Be an agent; `kind` is ``warm`` or ``guard``."""
    Agent(kind == "warm", path, idle_s).serve()
