"""A finished run, as it lies in its run directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ddp_lesson.doctor import Failure


@dataclass(frozen=True)
class Rank:
    """One rank of a run.

    Attributes
    ----------
    rank : int
        Its number in the world, from 0.
    exitcode : int or None
        As the system reported it: 0, a positive code, or minus the signal number. None if it never started or was
        lost with its launcher.
    log_dirs : tuple of Path
        One folder per attempt (``--max-restarts`` makes more than one), each with ``stdout.log`` and ``stderr.log``.
    """

    rank: int
    exitcode: int | None
    log_dirs: tuple[Path, ...] = ()

    @property
    def stdout(self) -> str:
        """Everything this rank wrote to standard output, all attempts in order."""
        return self._text("stdout.log")

    @property
    def stderr(self) -> str:
        """Everything this rank wrote to standard error, all attempts in order."""
        return self._text("stderr.log")

    @property
    def error(self) -> dict[str, Any] | None:
        """The last attempt's ``error.json``, which torch writes for scripts under ``@record``; None without one."""
        for folder in reversed(self.log_dirs):
            try:
                return json.loads((folder / "error.json").read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
        return None

    def _text(self, name: str) -> str:
        parts = []
        for folder in self.log_dirs:
            try:
                # As bytes: a progress bar's carriage returns are not ends of lines.
                parts.append((folder / name).read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
        return "".join(parts)


@dataclass(frozen=True)
class Run:
    """What a launch left behind.

    Attributes
    ----------
    path : Path
        The run directory.
    info : dict
        The content of ``run.json``: the command, options, times (seconds) and how the run ended.
    """

    path: Path
    info: dict[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read the run that lies in the directory `path`."""
        path = Path(path)
        return cls(path, json.loads((path / "run.json").read_text(encoding="utf-8")))

    @property
    def command(self) -> str:
        """The shell command that does the same, to paste into a terminal."""
        return self.info["command"]

    @property
    def script(self) -> str:
        """The script's file name."""
        return Path(self.info["script"]).name

    @property
    def returncode(self) -> int | None:
        """The launcher's exit code: 0, or 1 whatever the rank's own code was; None if the launcher was lost."""
        return self.info.get("returncode")

    @property
    def ok(self) -> bool:
        """True when every rank finished and nobody had to end the run."""
        return self.returncode == 0 and not self.timed_out and not self.stopped

    @property
    def wall_s(self) -> float:
        """Seconds from the launch to the end of the last process, without the start of an agent before it."""
        return self.info.get("wall_s", 0.0)

    @property
    def warm(self) -> bool:
        """True when the processes were forked with torch already imported."""
        return self.info["warm"]

    @property
    def timed_out(self) -> bool:
        """True when the deadline ended the run."""
        return self.info.get("timed_out", False)

    @property
    def stopped(self) -> bool:
        """True when a person ended the run (Interrupt, Ctrl-C)."""
        return self.info.get("stopped", False)

    @property
    def notes(self) -> list[str]:
        """What the kit has to say about the run, one sentence each."""
        return self.info.get("notes", [])

    @property
    def nproc(self) -> int:
        """Ranks on this node."""
        return self.info["nproc"]

    @cached_property
    def exits(self) -> list[dict[str, Any]]:
        """One dict per ended process: rank, attempt, pid, exitcode, t (s since launch), in the order of their ends."""
        return _read_lines(self.path / "exits.jsonl")

    @cached_property
    def ranks(self) -> list[Rank]:
        """The ranks in order."""
        # On a second node, local rank 0 is not rank 0.
        ends = {entry.get("local_rank", entry["rank"]): entry for entry in self.exits}
        return [
            Rank(ends.get(r, {}).get("rank", r), ends.get(r, {}).get("exitcode"), tuple(_log_dirs(self.path, r)))
            for r in range(self.nproc)
        ]

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """What the ranks reported, in the order of time: dicts with rank, t (s since launch), name, and the values.

        A line that a killed rank left unfinished is skipped.
        """
        rows = []
        for file in sorted((self.path / "records").glob("*.jsonl")):
            rows += _read_lines(file)
        return sorted(rows, key=lambda row: row["t"])

    @property
    def launcher_log(self) -> str:
        """What torchrun itself printed."""
        try:
            return (self.path / "launcher.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    @cached_property
    def failure(self) -> Failure | None:
        """Why the run failed and on which rank it began; None when it did not."""
        from ddp_lesson.doctor import failure_of

        return failure_of(self)

    def plot_timeline(self, **options: Any) -> Figure:
        """When each rank did what. See `ddp_lesson.show.plot_timeline`."""
        return self._draw("plot_timeline", **options)

    def plot_memory(self, **options: Any) -> Figure:
        """Bytes over time for each rank. See `ddp_lesson.show.plot_memory`."""
        return self._draw("plot_memory", **options)

    def plot_samples(self, **options: Any) -> Figure:
        """Which rank read which sample. See `ddp_lesson.show.plot_samples`."""
        return self._draw("plot_samples", **options)

    def plot_exchange(self, **options: Any) -> Figure:
        """What every rank held before a collective and after it. See `ddp_lesson.show.plot_exchange`."""
        return self._draw("plot_exchange", **options)

    def plot_devices(self, **options: Any) -> Figure:
        """Which GPUs a process sees under several values. See `ddp_lesson.show.plot_devices`."""
        return self._draw("plot_devices", **options)

    def plot(self, *names: str, **options: Any) -> Figure:
        """Recorded values over steps, per rank and averaged. See `ddp_lesson.show.plot`."""
        return self._draw("plot", *names, **options)

    def plot_attempts(self, name: str = "loss", **options: Any) -> Figure:
        """A recorded value over steps, each attempt of a restarted run apart. See `ddp_lesson.show.plot_attempts`."""
        return self._draw("plot_attempts", name, **options)

    def _draw(self, picture: str, *names: str, **options: Any) -> Figure:
        from ddp_lesson import show

        from .errors import NothingToDraw

        try:
            return getattr(show, picture)(self, *names, **options)
        except ValueError as error:  # the run did not record it: one sentence, without a traceback of ours
            raise NothingToDraw(str(error)) from None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from ddp_lesson.show.outcome import outcome

        return outcome(self)

    def __repr__(self) -> str:
        state = "ok" if self.ok else "stopped" if self.stopped else "timed out" if self.timed_out else "failed"
        return f"<Run {self.script}: {self.nproc} ranks, {state}, {self.wall_s:.2f} s>"


def _read_lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line; unreadable lines (torn by a kill) are left out."""
    rows = []
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return rows
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "rank" in row and "t" in row:
            rows.append(row)
    return rows


def _log_dirs(path: Path, local_rank: int) -> list[Path]:
    # torchrun makes logs/<run id>_<random>/attempt_<n>/<local rank>/
    found = (path / "logs").glob(f"*/attempt_*/{local_rank}")
    return sorted(found, key=lambda folder: int(folder.parent.name.rpartition("_")[2]))
