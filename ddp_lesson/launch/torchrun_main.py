"""torchrun's own main, with stores that listen on 127.0.0.1 only and workers whose exit codes are kept.

Runs as ``python -m ddp_lesson.launch.torchrun_main CONFIG …`` for a cold launch, or in a child of the agent for a warm
one. torchrun decides everything; only these doors are changed:

- the stores: torch binds them to all interfaces, also for a 127.0.0.1 endpoint, and they ask nobody who he is;
- the workers' processes, warm: the agent forks them instead of starting a new interpreter;
- the workers' exit codes: torchrun's report has only the first ones;
- the delays that only several nodes need;
- the wait for workers that stay when another one has failed: 30 s in torchrun, whatever --shutdown-timeout says.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any


def run(config: dict[str, Any], channel: socket.socket | None = None) -> None:
    """Run torchrun's main in this process.

    Parameters
    ----------
    config : dict
        argv (torchrun's arguments), loopback (bool), run_dir (str), t0_ns (int).
    channel : socket or None
        A connection to the agent that forks the workers; None starts them as torchrun does.

    Raises
    ------
    SystemExit, torch.distributed.elastic.multiprocessing.errors.ChildFailedError
        As torchrun's main does.
    """
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler

    if config["loopback"]:
        bind_stores_to_loopback()
        do_not_wait_for_other_nodes()
    if channel is None:
        popen = _kept(subprocess_handler.SubprocessHandler._popen, config)
    else:
        connection = Connection(channel, config)

        def popen(handler: Any, args: tuple, env: dict[str, str]) -> Worker:
            return connection.popen(handler, args, env)

    subprocess_handler.SubprocessHandler._popen = popen
    wait_for_survivors(int(config["argv"][config["argv"].index("--shutdown-timeout") + 1]))
    torchrun.main(_supported(config["argv"]))


def wait_for_survivors(seconds: int) -> None:
    """Let ranks that ignore SIGTERM live at most so long after another rank has failed."""
    from torch.distributed.elastic.multiprocessing.api import PContext

    close = PContext.close

    def close_soon(self: PContext, death_sig: signal.Signals | None = None, timeout: int = seconds) -> None:
        close(self, death_sig, timeout)

    PContext.close = close_soon


def bind_stores_to_loopback() -> None:
    """Make every TCPStore that this process hosts listen on 127.0.0.1 alone.

    torch's server binds all interfaces whatever the host name says; a socket that is bound already is taken over as it
    is (``master_listen_fd``; read in torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp, seen with psutil).
    """
    import torch.distributed as dist
    from torch.distributed import rendezvous
    from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend, static_tcp_rendezvous

    class LoopbackStore(dist.TCPStore):
        def __init__(
            self,
            host_name: str,
            port: int = 0,
            world_size: int | None = None,
            is_master: bool = False,
            timeout: timedelta = timedelta(seconds=300),
            wait_for_workers: bool = True,
            multi_tenant: bool = False,
            master_listen_fd: int | None = None,
            use_libuv: bool = True,
        ) -> None:
            if is_master and master_listen_fd is None and use_libuv:
                port, master_listen_fd = _listening(port)
            super().__init__(
                host_name,
                port,
                world_size,
                is_master,
                timeout,
                wait_for_workers,
                multi_tenant,
                master_listen_fd,
                use_libuv,
            )

    # torchrun reaches the class by four names.
    dist.TCPStore = LoopbackStore
    rendezvous.TCPStore = LoopbackStore
    c10d_rendezvous_backend.TCPStore = LoopbackStore
    static_tcp_rendezvous.TCPStore = LoopbackStore


def do_not_wait_for_other_nodes() -> None:
    """Leave out two delays that torchrun's rendezvous has for many nodes and that one node pays for, too.

    It sleeps up to 0.3 s at random so that nodes do not join at the same moment (``next_rendezvous``), and walks
    through the source of every frame to name the events it does not even log (``get_method_name``); both in
    torch/distributed/elastic/rendezvous/dynamic_rendezvous.py.
    """
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous

    delay = getattr(dynamic_rendezvous, "_delay", None)
    if delay is not None:
        dynamic_rendezvous._delay = lambda seconds: None if isinstance(seconds, tuple) else delay(seconds)
    if hasattr(dynamic_rendezvous, "get_method_name"):
        dynamic_rendezvous.get_method_name = lambda depth=2: sys._getframe(depth).f_code.co_name


def _listening(port: int) -> tuple[int, int | None]:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
        sock.listen(2048)
    except OSError:
        sock.close()
        return port, None  # torch fails on the same port with its own words
    return sock.getsockname()[1], sock.detach()


def _supported(argv: list[str]) -> list[str]:
    # Older torch has no --shutdown-timeout.
    from torch.distributed.run import get_args_parser

    if "--shutdown-timeout" in get_args_parser()._option_string_actions:
        return argv
    place = argv.index("--shutdown-timeout")
    return argv[:place] + argv[place + 2 :]


def note_exit(run_dir: str, t0_ns: int, env: dict[str, str], local_rank: int, pid: int, exitcode: int) -> None:
    """Append one ended process to the run directory's ``exits.jsonl``."""
    line = {
        "rank": int(env.get("RANK", 0)),
        "local_rank": local_rank,  # LOCAL_RANK is 0 for all under --virtual-local-rank
        "attempt": int(env.get("TORCHELASTIC_RESTART_COUNT", 0)),
        "pid": pid,
        "exitcode": exitcode,
        "t": round((time.monotonic_ns() - t0_ns) / 1e9, 6),
    }
    try:
        with open(os.path.join(run_dir, "exits.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError:
        pass  # a full disk loses the line, not the run


def _kept(popen: Any, config: dict[str, Any]) -> Any:
    """torchrun's own way to start a worker; the exit code is noted when torchrun sees it."""

    def start(self: Any, args: tuple, env: dict[str, str]) -> subprocess.Popen:
        process = popen(self, args, env)
        seen = []

        def noting(ask: Any) -> Any:
            def asked(*args: Any, **options: Any) -> int | None:
                code = ask(*args, **options)
                if code is not None and not seen:
                    seen.append(code)
                    note_exit(config["run_dir"], config["t0_ns"], env, self.local_rank_id, process.pid, code)
                return code

            return asked

        process.poll, process.wait = noting(process.poll), noting(process.wait)
        return process

    return start


class Connection:
    """torchrun's end of the line to the agent that forks the workers for it."""

    def __init__(self, channel: socket.socket, config: dict[str, Any]) -> None:
        self.channel = channel
        self.config = config
        self.codes: dict[int, int] = {}
        self.reaped: set[int] = set()
        self.started: list[int] = []
        self.rest = b""

    def popen(self, handler: Any, args: tuple, env: dict[str, str]) -> Worker:
        """Ask for one worker; takes the place of ``SubprocessHandler._popen``."""
        log = os.path.join(self.config["run_dir"], "launcher.log")
        order = {
            "args": list(args),
            "env": env,
            "local_rank": handler.local_rank_id,
            "cwd": os.getcwd(),
            "stdout": handler._stdout.name if handler._stdout else log,
            "stderr": handler._stderr.name if handler._stderr else log,
        }
        self.channel.sendall(json.dumps(order).encode() + b"\n")
        while not self.started:
            self.read(None)
        return Worker(self, self.started.pop(0), list(args))

    def reap(self, pid: int) -> None:
        """Let the agent take an ended worker off the process table.

        Until then it stays there as a zombie, as a child of torchrun's would, and can be signalled without an error.
        """
        if pid not in self.reaped:
            self.reaped.add(pid)
            self.channel.sendall(json.dumps({"reap": pid}).encode() + b"\n")

    def read(self, timeout: float | None) -> None:
        """Take in what the agent has said; wait at most `timeout` seconds for it."""
        self.channel.settimeout(timeout)
        try:
            data = self.channel.recv(65536)
        except (TimeoutError, BlockingIOError):
            return
        if not data:
            raise ConnectionError("the agent that forks the ranks is gone")
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "started" in said:
                self.started.append(said["started"])
            else:
                self.codes[said["pid"]] = said["exitcode"]


class Worker:
    """A forked worker, with the part of ``subprocess.Popen`` that torchrun uses."""

    def __init__(self, connection: Connection, pid: int, args: list[str]) -> None:
        self.connection = connection
        self.pid = pid
        self.args = args

    @property
    def returncode(self) -> int | None:
        """The exit code as far as it is known."""
        return self.connection.codes.get(self.pid)

    def poll(self) -> int | None:
        """The exit code, or None while the worker runs."""
        if self.returncode is None:
            self.connection.read(0)
        if self.returncode is not None:
            self.connection.reap(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raises subprocess.TimeoutExpired after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.connection.read(left)
        self.connection.reap(self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal unless the worker is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
