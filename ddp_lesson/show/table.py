"""The ranks of a run as a table."""

from __future__ import annotations

import html
import re
import signal
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .colours import rank_colour

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Rank, Run

_COLUMNS = ("rank", "exit code", "seconds", "records", "last line")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Table:
    """One row per rank.

    Attributes
    ----------
    rows : list of dict
        ``rank``, ``exitcode`` (None if unknown), ``seconds`` (from the launch to the rank's end, None if unknown),
        ``records`` (how many it wrote), ``last_line`` (of its standard output; of a failed rank: of its errors).
    """

    rows: list[dict[str, Any]]

    def _cells(self, row: dict[str, Any]) -> list[str]:
        seconds = "–" if row["seconds"] is None else f"{row['seconds']:.2f}"
        return [str(row["rank"]), _code(row["exitcode"]), seconds, str(row["records"]), row["last_line"]]

    def _repr_html_(self) -> str:
        line = "border-bottom:1px solid rgba(128,128,128,.35);padding:3px 12px 3px 0"
        head = "".join(
            f'<th style="text-align:{"left" if name in _COLUMNS[::4] else "right"};{line}">{name}</th>'
            for name in _COLUMNS
        )
        body = []
        for row in self.rows:
            rank, code, seconds, records, last = (html.escape(cell) for cell in self._cells(row))
            swatch = (
                f"display:inline-block;width:.7em;height:.7em;margin-right:.5em;background:{rank_colour(row['rank'])}"
            )
            right = f"text-align:right;{line}"
            weight = ";font-weight:bold" if row["exitcode"] else ""
            body.append(
                f'<tr><td style="text-align:left;{line}"><span style="{swatch}"></span>{rank}</td>'
                f'<td style="{right}{weight}">{code}</td><td style="{right}">{seconds}</td>'
                f'<td style="{right}">{records}</td>'
                f'<td style="text-align:left;{line};max-width:40em;overflow:hidden;text-overflow:ellipsis;'
                f'white-space:nowrap"><code style="background:none;color:inherit">{last}</code></td></tr>'
            )
        # no colours of its own: it stands on the page's background, light or dark
        return f'<table style="border-collapse:collapse"><tr>{head}</tr>{"".join(body)}</table>'

    def __repr__(self) -> str:
        cells = [list(_COLUMNS)] + [self._cells(row) for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(4)]
        lines = ["  ".join([*(c.rjust(w) for c, w in zip(line, widths, strict=False)), line[4][:80]]) for line in cells]
        return "\n".join(line.rstrip() for line in lines)


def table(run: Run) -> Table:
    """Exit code, seconds, number of records and last line of output of every rank.

    Parameters
    ----------
    run : Run
        Any finished run.

    Returns
    -------
    Table
    """
    ends = {entry["rank"]: entry["t"] for entry in run.exits}
    records = Counter(row["rank"] for row in run.records)
    rows = []
    for rank in run.ranks:
        rows.append(
            {
                "rank": rank.rank,
                "exitcode": rank.exitcode,
                "seconds": ends.get(rank.rank),
                "records": records[rank.rank],
                "last_line": _last_line(rank),
            }
        )
    return Table(rows)


def _last_line(rank: Rank) -> str:
    texts = (rank.stderr, rank.stdout) if rank.exitcode else (rank.stdout, rank.stderr)
    for text in texts:
        for line in reversed(_ESCAPES.sub("", text).splitlines()):
            # a progress bar rewrites its line after each carriage return; splitlines has parted them already
            if line.strip():
                return line.strip()
    return ""


def _code(code: int | None) -> str:
    if code is None:
        return "–"
    if code >= 0:
        return str(code)
    try:
        return f"{code} ({signal.Signals(-code).name})"
    except ValueError:
        return str(code)
