"""Which rank a failed run began on, and why."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import match

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Rank, Run

# What a rank says when another one has gone: never the cause while any rank has something better.
VICTIM = re.compile(
    r"Connection (closed|reset) by peer|Broken pipe|Timed out waiting|Application timeout caused pair closure|"
    r"connectFullMesh failed|Socket (closed|Timeout)|wait timeout after|recvValue failed|sendBytes failed|"
    r"remote process exited|NCCL communicator was aborted|watchdog|Connection was likely closed|"
    r"unhandled system error|the store .*(gone|closed)|failed to pass monitoredBarrier|SignalException",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"Connection (closed|reset) by peer|Broken pipe")
_PREFIX = re.compile(r"^\[(rank|default)\d+\]:\s?", re.MULTILINE)
_GROUP = re.compile(r"^  \+ Exception Group Traceback .*?^  \| (\w*Group: [^\n]*)", re.MULTILINE | re.DOTALL)
_HEADER = "Traceback (most recent call last):"
_LAST = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Warning|Exit|Iteration|Group)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Failure:
    """Why a run failed.

    Attributes
    ----------
    rank : int or None
        The rank that it began on; None when no rank is to blame or it cannot be told.
    cause : str or None
        A pitfall's slug; None for an exception that is nobody's pitfall (a plain bug).
    exception : str or None
        The exception's own words, or what happened to the process.
    advice : str
        What to do.
    timed_out : bool
        True when the deadline ended the run.
    """

    rank: int | None
    cause: str | None
    exception: str | None
    advice: str
    timed_out: bool = False


def failure_of(run: Run) -> Failure | None:
    """Name the failure of a finished run; None for one that did not fail."""
    if run.ok:
        return None
    begun = _first_exception(run) or _first_signal(run) or _first_exit(run)
    if begun is not None:
        return begun if not run.timed_out else Failure(**{**vars(begun), "timed_out": True})
    if run.stopped:
        return Failure(None, None, "The run was stopped.", "Nothing failed: run the cell again.")
    if run.timed_out:
        left = [entry["rank"] for entry in run.exits if entry["exitcode"] in (-signal.SIGTERM, -signal.SIGKILL)]
        names = ", ".join(str(rank) for rank in sorted(left))
        advice = f"Still running at the deadline of {run.info['timeout']:g} s: ranks {names}."
        if not run.exits:
            advice = f"No rank was started within {run.info['timeout']:g} s: torchrun may wait for a node."
        return Failure(None, None, None, advice, timed_out=True)
    victim = _first_ended(run) or _left_early(run) or _first_victim(run)
    if victim is not None:
        return victim
    said = last_exception(run.launcher_log) or _launcher_end(run)
    entry = match(said)
    advice = entry.advice if entry else "torchrun's own output is in the run directory."
    return Failure(None, entry.slug if entry else None, said, advice)


def echoes(run: Run) -> set[int]:
    """The ranks of a failed run that suffered from the one it began on, or raised the same.

    Whether such a rank still finds the time to complain, or is ended first, is a matter of milliseconds.
    """
    failure = run.failure
    if failure is None or failure.rank is None:
        return set()
    found = set()
    for rank in run.ranks:
        if rank.rank == failure.rank or not rank.exitcode:
            continue
        said = _exception(rank)
        ended = rank.exitcode in (-signal.SIGTERM, -signal.SIGABRT)
        if ended or (said and (VICTIM.search(said) or said == failure.exception)):
            found.add(rank.rank)
    return found


def last_exception(text: str) -> str | None:
    """The last exception that a process printed, without its traceback; None if it printed none."""
    text = _PREFIX.sub("", text)
    group = _GROUP.search(text)
    if group:
        return group.group(1)
    start = text.rfind(_HEADER)
    if start < 0:
        found = list(_LAST.finditer(text))
        return found[-1].group().strip() if found and 'File "' in text else None
    lines = text[start:].splitlines()[1:]
    for number, line in enumerate(lines):
        if line and not line[0].isspace() and line[0] not in "|+":
            message = [line]
            for more in lines[number + 1 :]:
                if not more.strip() or more.startswith(("Exception raised from", "W1", "E1", "I1", "[W", "[E")):
                    break
                message.append(more)
            return "\n".join(message)[:2000].strip()
    return None


def _first_exception(run: Run) -> Failure | None:
    found = []
    for rank in run.ranks:
        if rank.exitcode == 0:
            continue
        said = _exception(rank)
        if said and not VICTIM.search(said) and not (run.stopped and said.startswith("KeyboardInterrupt")):
            found.append((_time(run, rank), rank.rank, said))
    if not found:
        return None
    said = min(found)[2]
    # Ranks that raise the same do it at the same moment; which one is first means nothing.
    same = sorted(rank for _, rank, other in found if other == said)
    rank = same[0]
    entry = match(said)
    who = f"Rank {rank}" if len(same) == 1 else "Ranks " + ", ".join(map(str, same))
    advice = entry.advice if entry else f"{who} raised it: see the line that the traceback names."
    return Failure(rank, entry.slug if entry else None, said, advice)


def _exception(rank: Rank) -> str | None:
    said = last_exception(_last_attempt(rank, "stderr.log"))
    if said is None and rank.error:
        message = rank.error.get("message")
        said = message.get("message") if isinstance(message, dict) else message
    return said


def _first_signal(run: Run) -> Failure | None:
    # TERM comes from the launcher, ABRT often from a peer's end.
    ordered = _ordered(run)
    failed = min((entry["t"] for entry in ordered if entry["exitcode"]), default=0.0)
    for entry in ordered:
        code = entry["exitcode"]
        # The launcher kills what is still there a few seconds after it asked to end.
        late = entry["t"] > failed + 1
        ended_by_us = code == -signal.SIGKILL and (run.timed_out or run.stopped or late or _launcher_lost(run))
        if code is None or code >= 0 or code in (-signal.SIGTERM, -signal.SIGABRT) or ended_by_us:
            continue
        return _by_signal(entry)
    return None


def _first_ended(run: Run) -> Failure | None:
    """A rank that ended by TERM or ABRT and was the first to end, so that neither came from another one's end."""
    ordered = _ordered(run)
    if not ordered or _launcher_lost(run):
        return None
    # The system closes the connections of a process before it reports its end: a victim can be reported first. The
    # launcher sees a victim's end some milliseconds later and only then sends TERM; it never sends ABRT.
    lost = any(_CLOSED.search(_exception(rank) or "") for rank in run.ranks)
    margin = {-signal.SIGTERM: 0.01 * lost, -signal.SIGABRT: 1.0 * lost}
    suffered = {rank.rank for rank in run.ranks if VICTIM.search(_last_attempt(rank, "stderr.log"))}
    for entry in ordered:
        early = entry["t"] - ordered[0]["t"] <= margin.get(entry["exitcode"], -1)
        if early and entry["rank"] not in suffered:
            return _by_signal(entry)
    return None


def _by_signal(entry: dict) -> Failure:
    try:
        name = signal.Signals(-entry["exitcode"]).name
    except ValueError:
        name = f"signal {-entry['exitcode']}"
    cause, advice = {
        "SIGKILL": ("sigkill_host_oom", "Nobody but the system kills like that: it was probably out of memory."),
        "SIGSEGV": ("sigsegv_native_crash", "Native code crashed: look for compiled packages that do not fit."),
        "SIGABRT": (None, "Native code gave up: the process's output has the last words."),
    }.get(name, (None, "The signal came from outside the script."))
    return Failure(entry["rank"], cause, f"The process was ended by {name}.", advice)


def _launcher_lost(run: Run) -> bool:
    return run.returncode is None or run.returncode < 0


def _first_exit(run: Run) -> Failure | None:
    ranks = {rank.rank: rank for rank in run.ranks}
    for entry in _ordered(run):
        if (entry["exitcode"] or 0) > 0 and not _exception(ranks[entry["rank"]]):
            words = _last_attempt(ranks[entry["rank"]], "stderr.log").strip().splitlines()
            said = words[-1] if words else f"The script ended with exit code {entry['exitcode']}."
            found = match(said)
            return Failure(
                entry["rank"], found.slug if found else None, said,
                found.advice if found else "The script ended itself: look for sys.exit or os._exit.",
            )  # fmt: skip
    return None


def _left_early(run: Run) -> Failure | None:
    ordered = _ordered(run)
    if ordered and ordered[0]["exitcode"] == 0 and any(entry["exitcode"] for entry in ordered):
        rank = ordered[0]["rank"]
        return Failure(
            rank, "peer_exited_before_communication_done",
            f"Rank {rank} had ended while others were still waiting for it.",
            "All ranks must call the same collectives the same number of times.",
        )  # fmt: skip
    return None


def _first_victim(run: Run) -> Failure | None:
    found = [(_time(run, rank), rank.rank, said) for rank in run.ranks if rank.exitcode and (said := _exception(rank))]
    if not found:
        return None
    _, rank, said = min(found)
    entry = match(said)
    # The rank that complains is the one that waited.
    advice = entry.advice if entry else "The rank that complains waited for another one: look at the others."
    return Failure(rank, entry.slug if entry else None, said, advice)


def _ordered(run: Run) -> list[dict]:
    last = {entry["rank"]: entry for entry in run.exits}
    return sorted(last.values(), key=lambda entry: entry["t"])


def _time(run: Run, rank: Rank) -> float:
    # When the traceback was written, to the nanosecond; the launcher sees ends only in turns.
    try:
        return (rank.log_dirs[-1] / "stderr.log").stat().st_mtime
    except (IndexError, OSError):
        return float("inf")


def _last_attempt(rank: Rank, name: str) -> str:
    try:
        return Path(rank.log_dirs[-1], name).read_text(encoding="utf-8", errors="replace")
    except (IndexError, OSError):
        return ""


def _launcher_end(run: Run) -> str:
    if run.returncode is None:
        return "The launcher was lost."
    if run.returncode < 0:
        return f"torchrun itself was ended by {signal.Signals(-run.returncode).name}."
    words = run.launcher_log.strip().splitlines()
    return words[-1] if words else f"torchrun ended with exit code {run.returncode}."
