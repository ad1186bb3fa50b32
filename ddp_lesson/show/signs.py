"""What the pictures of samples have in common: small print and the signs' legend."""

from __future__ import annotations

from typing import Any

from .colours import INK
from .reading import Reading

RING = {"facecolor": "white", "edgecolor": "black", "linewidth": 1.3}


def note(reading: Reading, epochs: list[Any], *sentences: str) -> str:
    """The small print: these sentences, and what the data leave open."""
    parts = [sentence for sentence in sentences if sentence]
    if len(epochs) < len(reading.epochs):
        parts.append(f"The first {len(epochs)} of {len(reading.epochs)} epochs.")
    if reading.rereads and None in reading.orders:
        parts.append("A rank read a sample again: tell several epochs apart by record(epoch=…).")
    if not reading.size_known:
        parts.append(f"The run did not record dataset_size; taken: highest index + 1 = {reading.size}.")
    return " ".join(parts)


def ink(colour: str) -> str:
    """Black or white, whichever is readable on `colour`."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 118 else "white"


def handles(again: bool, never: bool, many: bool = False) -> list[Any]:
    """Legend entries for the signs that occur; `many` is True where hatching stands for rings."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ring = {"linestyle": "none", "marker": "o", "markerfacecolor": "white", "markeredgecolor": "black"}
    label = "read more than once"
    found: list[Any] = []
    if again and many:
        found.append(Patch(facecolor="white", edgecolor=INK, hatch="////", linewidth=0.6, label=label))
    elif again:
        found.append(Line2D([], [], **ring, markersize=8, markeredgewidth=1.5, label=label))
    if never:
        found.append(Patch(facecolor="white", edgecolor=INK, linewidth=1.3, label="never read"))
    return found
