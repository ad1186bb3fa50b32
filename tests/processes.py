"""Looks at real processes: what the tests have started, what is left of it, who listens where."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from ddp_lesson.launch.client import pool

MARK = "DDP_LESSON_TESTS"
GONE_S = 6.0

keep: set[int] = set()
"""Processes that may stay while a test ends, and their children: shared kernels and their agents."""


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first value of `condition` that is true; an AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """True for a process that exists and is no zombie."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def strays() -> list[psutil.Process]:
    """Everything alive that the tests have started, but for idle agents and what `keep` names."""
    expected = {agent.process.pid for agent in pool.agents}
    for pid in keep:
        if psutil.pid_exists(pid):
            expected |= {pid, *(child.pid for child in psutil.Process(pid).children())}
    found = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get(MARK) == str(os.getpid())
        except (psutil.Error, OSError):
            continue
        if mine and process.pid not in expected and alive(process.pid):
            found.append(process)
    return found


def assert_none_left(also: Iterable[int] = (), seconds: float = GONE_S) -> None:
    """See that, within `seconds`, no stray is alive, nor a process of `also`. What is left is ended."""
    also = set(also)
    try:
        wait_for(lambda: not strays() and not any(map(alive, also)), seconds, "the end of all processes")
    except AssertionError as error:
        left = [f"{p.pid}: {' '.join(p.cmdline())[:200]}" for p in strays()] + [str(p) for p in also if alive(p)]
        end_strays(also)
        raise AssertionError("left over:\n" + "\n".join(left)) from error


def end_strays(also: Iterable[int] = ()) -> None:
    """Kill what a failed test has left."""
    for pid in {*(process.pid for process in strays()), *also}:
        if alive(pid):
            psutil.Process(pid).kill()


def launcher_of(run_dir: Path) -> psutil.Process:
    """The torchrun process of a run that goes on: it holds the run's ``launcher.log`` as its standard error."""
    for process in strays():
        try:
            if os.readlink(f"/proc/{process.pid}/fd/2") == str(run_dir / "launcher.log"):
                return process
        except OSError:
            continue
    raise AssertionError(f"no torchrun for {run_dir}")


def run_dirs(home: Path) -> list[Path]:
    """The run directories below `home` by number."""
    return sorted((home / ".runs").glob("[0-9]*-*"), key=lambda path: int(path.name.partition("-")[0]))


def said(run_dir: Path) -> dict[int, dict[str, Any]]:
    """What each rank has printed as a line of JSON."""
    found = {}
    for file in run_dir.glob("logs/*/attempt_*/*/stdout.log"):
        for line in file.read_text().splitlines():
            if line.startswith("{") and line.endswith("}"):
                row = json.loads(line)
                found[row["rank"]] = row
    return found


def wait_for_ranks(home: Path, ranks: int = 2, seconds: float = 60) -> tuple[Path, dict[int, dict[str, Any]]]:
    """The newest run's directory and what its ranks have printed, once all have."""

    def all_said() -> Any:
        folders = run_dirs(home)
        rows = said(folders[-1]) if folders else {}
        return len(rows) == ranks and (folders[-1], rows)

    return wait_for(all_said, seconds, f"a line of JSON from each of {ranks} ranks")


def pids_of(rows: dict[int, dict[str, Any]]) -> set[int]:
    """The processes that ranks of ``stay.py`` named: themselves and their children."""
    return {pid for row in rows.values() for pid in (row["pid"], *row["children"])}


def assert_port_is_free(port: int) -> None:
    """See that nobody listens there and everybody could."""

    def nobody_listens() -> bool:
        found = psutil.net_connections("tcp")
        return not [c for c in found if c.laddr.port == port and c.status == psutil.CONN_LISTEN]

    # A process whose main thread has ended may have others that take a moment longer.
    wait_for(nobody_listens, 1, f"nobody listens on port {port}")
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", port))
