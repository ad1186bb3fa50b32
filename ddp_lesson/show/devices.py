"""Which GPUs of a machine a process sees, and by what numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .colours import INK
from .signs import ink
from .words import capital, count, number, small

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

GPUS = 4  # columns, unless the run recorded how many there are
# From dark to light: cuda:0 is found at once. None of them is the colour of a rank.
SHADES = ("#332288", "#6A5FB0", "#9D96CE", "#CBC7E6")
INSIDE = {"ha": "center", "va": "center_baseline", "in_layout": False}

Row = tuple[str | None, list[int]]


def plot_devices(run: Run) -> Figure:
    """Draw which GPUs are seen under several values of CUDA_VISIBLE_DEVICES.

    Parameters
    ----------
    run : Run
        A run that called ``record(value="1,0", sees=[1, 0])`` for each value: the machine's GPUs in the order in
        which the process numbers them. ``value=None`` means that the variable is not set; ``gpus=8`` in any record
        says how many GPUs the machine has, 4 without it.

    Returns
    -------
    Figure
        A row for each value and a column for each GPU of the machine; what is seen bears the number that the process
        gives it. A value that several ranks recorded alike gets one row.

    Raises
    ------
    ValueError
        If nothing was recorded.
    """
    rows: list[Row] = []
    gpus = 0
    for record in run.records:
        if record.get("kind") == "record" and isinstance(record.get("sees"), list) and "value" in record:
            row = (record["value"], record["sees"])
            rows += [row] if row not in rows else []
            gpus = max(gpus, record.get("gpus", GPUS), *(gpu + 1 for gpu in record["sees"]), 0)
    if not rows:
        raise ValueError("This run recorded no devices. Call record(value=text, sees=list_of_numbers).")
    return _draw(rows, max(gpus, 1), sentence(rows))


def sentence(rows: list[Row]) -> str:
    """What the values do to the GPUs, counted."""
    kinds = [_kind(*row) for row in rows]
    total = f" of {count(len(rows), 'value')}"
    clauses = []
    for kind, one, more in (
        ("renumbers", "renumbers the GPUs", "renumber the GPUs"),
        ("cut", "is cut short", "are cut short"),
        ("hides", "hides every GPU", "hide every GPU"),
    ):
        found = kinds.count(kind)
        if found:
            clauses.append(f"{number(found)}{total} {one if found == 1 else more}")
            total = ""
    if not clauses:
        return "Every GPU keeps its number"
    return capital("; ".join([clauses[0], *map(small, clauses[1:])]))


def _kind(value: str | None, sees: list[int]) -> str:
    if not sees:
        return "hides"
    # every run of characters without a comma or a blank between them is meant to be a GPU
    if value is not None and len(sees) < len(re.findall(r"[^\s,;]+", value)):
        return "cut"
    return "renumbers" if sees != list(range(len(sees))) else "keeps"


def _label(value: str | None) -> str:
    return "not set" if value is None else f'"{value}"'


def _draw(rows: list[Row], gpus: int, title: str) -> Figure:
    from matplotlib.patches import Rectangle

    from .figure import card, style

    with style():
        fig = card(title, "In a cell: the number under which the process knows this GPU.", 0.36 * len(rows) + 0.5)
        ax = fig.add_subplot()
        for place, (_, sees) in enumerate(rows):
            for gpu in range(gpus):
                seen = gpu in sees
                colour = SHADES[min(sees.index(gpu), len(SHADES) - 1)] if seen else "white"
                look: dict[str, Any] = {"facecolor": colour, "edgecolor": "#C8C8C8" if not seen else colour}
                ax.add_patch(Rectangle((gpu + 0.02, place - 0.42), 0.96, 0.84, linewidth=0.8, **look))
                if seen:
                    text = f"cuda:{sees.index(gpu)}" if gpus <= 12 else str(sees.index(gpu))
                    ax.text(gpu + 0.5, place, text, color=ink(colour), size=9, **INSIDE)
        ax.set_xlim(0, gpus)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_yticks(range(len(rows)), [_label(value) for value, _ in rows], family="monospace", color=INK)
        ax.set_xticks([gpu + 0.5 for gpu in range(gpus)], [f"GPU {g}" if gpus <= 12 else str(g) for g in range(gpus)])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    return fig
