"""The difference between two scripts of the course, made from the files themselves."""

from __future__ import annotations

import difflib
import html
from dataclasses import dataclass

from ddp_lesson.launch.errors import LaunchError
from ddp_lesson.launch.scripts import checked
from ddp_lesson.show.outcome import PRE


@dataclass(frozen=True)
class ScriptDiff:
    """Lines that go (−), come (+) or stay.

    Attributes
    ----------
    lines : tuple of str
        Each begins with ``"-"``, ``"+"`` or ``" "``.
    """

    lines: tuple[str, ...]

    @property
    def changed(self) -> int:
        """How many lines go or come."""
        return sum(line[0] in "+-" for line in self.lines)

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        rows = []
        for line in self.lines:
            text = html.escape(line)
            # The sign tells it, too, where there is no colour.
            colour = {"+": "#009E73", "-": "#D55E00"}.get(line[0])
            rows.append(f'<span style="color: {colour}"><b>{text}</b></span>' if colour else text)
        return PRE + "\n".join(rows) + "</pre>"


def diff(before: str, after: str, context: int = 2) -> ScriptDiff:
    """Compare two scripts of ``ddp_lesson/scripts/``.

    Parameters
    ----------
    before, after : str
        File names.
    context : int
        Unchanged lines to show around a change.

    Raises
    ------
    LaunchError
        When a script is not there yet.
    """
    texts = []
    for name in (before, after):
        try:
            texts.append(checked(name).read_text(encoding="utf-8").splitlines())
        except FileNotFoundError:
            raise LaunchError(f"{name} is not there yet: run the cell that writes it.") from None
    rows = list(difflib.unified_diff(*texts, lineterm="", n=context))[2:]
    return ScriptDiff(tuple("⋯" if row.startswith("@@") else row for row in rows if row != rows[0]))
