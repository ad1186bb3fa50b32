"""The white card every picture is drawn on. Importing this module imports matplotlib, so only a plot does it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from .colours import FAINT, INK, QUIET

WIDTH = 9.0  # inches: a notebook's column at 100 dots per inch
DPI = 100

_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same picture everywhere
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "grid.color": FAINT,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "hatch.linewidth": 1.0,
}


class Figure(matplotlib.figure.Figure):
    """A matplotlib Figure that a notebook shows without pyplot, and therefore once."""

    head = 0.0  # inches that the texts above the axes take

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with style():
            self.savefig(buffer, format="png", dpi=self.dpi)
        return buffer.getvalue()

    def arrange(self, height: float) -> None:
        """Make the card `height` inches high: texts at the top, axes and legend share the rest."""
        height = round(height, 2)
        self.set_size_inches(WIDTH, height)
        self.set_layout_engine("constrained", rect=(0.004, 0, 0.992, 1 - self.head / height), w_pad=0.06, h_pad=0.05)
        y = 0.12
        for text in self.texts:
            text.set_position((0.1 / WIDTH, 1 - y / height))
            y += 0.225 * (text.get_text().count("\n") + 1) + 0.06


@contextmanager
def style() -> Iterator[None]:
    """Our style on matplotlib's own defaults, whatever style the notebook has chosen; put back afterwards."""
    # reading the backend would make matplotlib choose one and import pyplot
    plain = {key: value for key, value in mpl.rcParamsDefault.items() if not key.startswith(("backend", "interactive"))}
    with mpl.rc_context(plain | _STYLE):
        yield


def card(title: str, note: str, body: float) -> Figure:
    """An opaque white card with a sentence on top.

    Parameters
    ----------
    title : str
        The sentence that says what one sees; wrapped to the width.
    note : str
        What one must know to read the picture, in small print below the title; may be empty.
    body : float
        Height left for axes and a legend of one line, in inches.

    Returns
    -------
    Figure
        Without axes; the layout keeps them below the texts. To be called within `style`.
    """
    fig = Figure(figsize=(WIDTH, body), dpi=DPI, facecolor="white", edgecolor="white")
    FigureCanvasAgg(fig)
    heading = fig.suptitle("", x=0, y=1, ha="left", va="top", fontsize=12, fontweight="bold")
    lines = _wrap(heading, title)
    fig.head = 0.18 + 0.225 * lines
    if note:
        lines = _wrap(fig.text(0, 1, "", ha="left", va="top", fontsize=9, color=QUIET), note)
        fig.head += 0.06 + 0.175 * lines
    fig.arrange(body + fig.head)
    return fig


def _wrap(text: Text, words: str) -> int:
    """Set the words of a text so that no line is wider than the card, and return the number of lines."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        text.set_text(longer)
        if lines[-1] and text.get_window_extent().width > (WIDTH - 0.25) * DPI:
            lines.append(word)
        else:
            lines[-1] = longer
    text.set_text("\n".join(lines))
    return len(lines)


def legend(fig: Figure, handles: list[Any]) -> None:
    """A legend below the axes, in as many lines as it needs; each handle carries its label."""
    for columns in range(len(handles), 0, -1):
        # matplotlib fills column by column: put them so that they read row by row
        by_column = [handle for column in range(columns) for handle in handles[column::columns]]
        for space in (1.8, 1.1):
            look = {"ncols": columns, "handlelength": 1.5, "columnspacing": space}
            made = fig.legend(handles=by_column, loc="outside lower left", **look)
            if made.get_window_extent().width < (WIDTH - 0.1) * DPI:
                fig.arrange(fig.get_figheight() + 0.19 * (-(-len(handles) // columns) - 1))
                return
            made.remove()
