"""Ends process trees, whatever they do to stay."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterable

import psutil

MARK = "DDP_LESSON_AGENT"
GRACE_S = 3.0


def become_subreaper() -> None:
    """Make orphans among the descendants children of this process (Linux; elsewhere the mark finds them)."""
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send `number` to this process when its parent ends (Linux)."""
    _prctl(1, number)  # PR_SET_PDEATHSIG


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """All living processes below `pid` (this process by default), without zombies."""
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process for process in found if alive(process)]


def marked(mark: str) -> list[psutil.Process]:
    """All living processes that were started below the agent with this mark, wherever they hang in the tree now."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark and alive(process):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def alive(process: psutil.Process) -> bool:
    """True for a process that still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def send(processes: Iterable[psutil.Process], number: int) -> None:
    """Send a signal to each; those that are gone are passed over."""
    for process in processes:
        try:
            process.send_signal(number)
        except (psutil.Error, OSError):
            continue


def end(processes: list[psutil.Process], grace_s: float = GRACE_S) -> dict[int, int]:
    """TERM, wait, KILL. Returns when they are gone or cannot be reached.

    Children of this process are taken off the process table; their exit codes come back by process id.
    """
    send(processes, signal.SIGTERM)
    gone, left = psutil.wait_procs(processes, timeout=grace_s)
    send(left, signal.SIGKILL)
    gone += psutil.wait_procs(left, timeout=2)[0]
    return {process.pid: int(process.returncode) for process in gone if process.returncode is not None}


def end_marked(mark: str) -> None:
    """End what an agent left behind when it was killed itself; looks again until nothing is found."""
    for grace in (GRACE_S, 0.5, 0.5):
        found = marked(mark)
        if not found:
            return
        end(found, grace)
