"""What stands below a cell while its run goes on: redrawn in place, at most ten times a second."""

from __future__ import annotations

import html
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .colours import rank_colour
from .outcome import PRE, shorten

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

EVERY_S = 0.1
TAIL_BYTES = 8192


def enabled() -> bool:
    """False where ``DDP_LESSON_LIVE=0`` asks for outputs that do not depend on time."""
    return os.environ.get("DDP_LESSON_LIVE", "1") != "0"


class Live:
    """Draws a run while it goes on, and its result at the end, in one and the same output."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.drawn = 0.0
        self.last: dict[int, dict[str, Any]] = {}

    def __call__(self, run: Run) -> None:
        """Draw the run as it stands, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self.drawn < EVERY_S:
            return
        self.show({"text/html": self.html(run, now), "text/plain": "running"})
        self.drawn = time.monotonic()

    def show(self, bundle: dict[str, str]) -> None:
        """Put a bundle in the output, in place of what was there."""
        from IPython.display import display

        if self.handle is None:
            self.handle = display(bundle, raw=True, display_id=True)
        else:
            self.handle.update(bundle, raw=True)

    def html(self, run: Run, now: float) -> str:
        """A line per rank: progress, and the last thing it said."""
        elapsed = now - run.info.get("t0_ns", 0) / 1e9
        rows = [self._row(run, rank) for rank in range(run.nproc)]
        return (
            f"<div>{PRE}$ {html.escape(shorten(run.command))}</pre>"
            f"<p>running, {elapsed:.1f} s. To stop it: Kernel, Interrupt.</p><table>{''.join(rows)}</table></div>"
        )

    def _row(self, run: Run, rank: int) -> str:
        progress = self._progress(run.path, rank)
        bar = ""
        if progress:
            step, total = progress
            bar = f'<progress value="{step}" max="{total}" aria-label="rank {rank}"></progress> {step}/{total}'
        said = html.escape(shorten(_last_line(run.path, rank))[:120])
        colour = rank_colour(rank)
        return (
            f'<tr><td style="border-left: 4px solid {colour}"><b>rank {rank}</b></td><td>{bar}</td>'
            f'<td style="text-align: left"><code>{said}</code></td></tr>'
        )

    def _progress(self, path: Path, rank: int) -> tuple[float, float] | None:
        """The newest ``record(step=…, total=…)``; a total is remembered from earlier records."""
        for line in reversed(_tail(path / "records" / f"{rank}.jsonl").split(b"\n")):
            if b'"step"' not in line:
                continue
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if row.get("kind") == "record" and isinstance(row.get("step"), int | float):
                known = self.last.setdefault(rank, {})
                known["step"] = row["step"]
                if isinstance(row.get("total"), int | float):
                    known["total"] = row["total"]
                break
        known = self.last.get(rank, {})
        if known.get("total", 0) > 0:
            return min(known["step"] + 1, known["total"]), known["total"]
        return None


def _last_line(path: Path, rank: int) -> str:
    newest, said = -1.0, ""
    for name in ("stdout.log", "stderr.log"):
        for file in (path / "logs").glob(f"*/attempt_*/{rank}/{name}"):
            lines = _tail(file).decode(errors="replace").replace("\r", "\n").split("\n")
            text = next((line for line in reversed(lines) if line.strip()), "")
            try:
                changed = file.stat().st_mtime
            except OSError:
                continue
            if text and changed > newest:
                newest, said = changed, text
    return said


def _tail(file: Path) -> bytes:
    """The last few KB of a file: a fixed cost, however much the ranks write."""
    try:
        with open(file, "rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - TAIL_BYTES))
            return opened.read()
    except OSError:
        return b""
