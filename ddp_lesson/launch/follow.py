"""Prints what ranks write while they run, whole lines only, each marked with its rank."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from .run import Run


class Printer:
    """Follows the ranks' files; call it with the run as it stands, and `finish` at the end."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.streams = {"stdout.log": out or sys.stdout, "stderr.log": err or sys.stderr}
        self.read: dict[Path, int] = {}
        self.shown = False

    def __call__(self, run: Run) -> None:
        """Print the lines that have come since."""
        if not self.shown:
            print(f"$ {run.command}", file=self.streams["stderr.log"], flush=True)
            self.shown = True
        for file in sorted((run.path / "logs").glob("*/attempt_*/*/*.log")):
            self._print_new(file, last=False)

    def finish(self, run: Run) -> None:
        """Print the rest, how the run ended, and where it lies."""
        self(run)
        for file in sorted((run.path / "logs").glob("*/attempt_*/*/*.log")):
            self._print_new(file, last=True)
        err = self.streams["stderr.log"]
        for note in run.notes:
            print(note, file=err)
        if run.failure is not None and not run.stopped:
            where = f"It began on rank {run.failure.rank}: " if run.failure.rank is not None else ""
            said = [where + run.failure.exception] if run.failure.exception else []
            print("\n".join([*said, run.failure.advice]), file=err)
        codes = ", ".join(str(rank.exitcode) for rank in run.ranks)
        ends = {"finished": run.ok, "reached the deadline": run.timed_out, "stopped": run.stopped, "failed": True}
        how = next(words for words, true in ends.items() if true)
        print(f"{how} after {run.wall_s:.1f} s; exit codes by rank: {codes}; all of it in {run.path}", file=err)

    def _print_new(self, file: Path, last: bool) -> None:
        if file.name not in self.streams:
            return
        try:
            with open(file, "rb") as opened:
                opened.seek(self.read.get(file, 0))
                data = opened.read()
        except OSError:
            return
        whole = data if last else data[: data.rfind(b"\n") + 1]
        self.read[file] = self.read.get(file, 0) + len(whole)
        text = whole.decode(errors="replace").removesuffix("\n")
        for line in text.split("\n") if whole else ():
            # A progress bar that redraws itself leaves its last state.
            shown = line.rstrip("\r").rpartition("\r")[2]
            print(f"[rank {file.parent.name}] {shown}", file=self.streams[file.name], flush=True)
