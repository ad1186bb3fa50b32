"""Who read which sample of a large dataset: a mosaic of squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .colours import INK, rank_colour
from .reading import Reading
from .signs import handles, note
from .words import listed

if TYPE_CHECKING:
    from .figure import Figure

CELLS = 40_000  # beyond, a sample would be thinner than two pixels
SIGNS = ("", ".", "x", "+")  # for every eight ranks another one, where a square is too small for hatching
RINGS = 200  # more samples are hatched


def draw_mosaic(reading: Reading, epochs: list[Any]) -> Figure:
    """One mosaic for each epoch, or, where many samples have several readers, for each epoch and rank."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    from .figure import DPI, WIDTH, card, legend, style

    size, ranks = min(reading.size, CELLS), reading.ranks
    # where many samples have several readers, one square cannot show them: then a mosaic for each rank
    most = max(sum(times > 1 for times in reading.counts(epoch).values()) for epoch in epochs)
    many = most > RINGS
    apart = len(ranks) > 1 and (many or most > size / 2)
    panels = [(epoch, [rank]) for epoch in epochs for rank in ranks] if apart else [(epoch, ranks) for epoch in epochs]
    across = min(len(panels), (len(ranks) if len(epochs) > 1 else 4) if apart else 3, 8)
    down = -(-len(panels) // across)
    aspect = {1: 2.8, 2: 1.35}.get(across, 1.0)
    # a multiple of the number of ranks: what is strided stands in stripes
    columns = len(ranks) * max(1, round((size * aspect) ** 0.5 / len(ranks)))
    rows = -(-size // columns)
    wide = (WIDTH - 0.9 - 0.25 * across) / across
    pixels = wide * DPI / columns
    never = False
    heading = len(_headings(reading, *panels[0], apart)) + 0.3
    small_print = note(
        reading,
        epochs,
        f"One square is one sample, {columns} in a row, in the order of the dataset.",
        f"The first {size} of {reading.size} samples." if size < reading.size else "",
    )
    with style():
        fig = card(reading.map_title(), small_print, (wide * rows / columns + 0.19 * heading) * down + 0.85)
        grid = fig.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for ax, (epoch, shown) in zip(grid.flat, panels, strict=False):
            counts = reading.counts(epoch)
            image = np.ones((rows * columns, 3))
            owners: dict[int, list[int]] = {}
            for rank in shown:
                indices = sorted({i for i in reading.orders[epoch][rank] if i < size})
                image[indices] = to_rgb(rank_colour(rank))
                if SIGNS[rank // 8 % 4]:
                    look = {"s": max(1.0, 0.12 * pixels**2), "color": "white", "linewidth": 0.8}
                    places = [i % columns for i in indices], [i // columns for i in indices]
                    ax.scatter(*places, marker=SIGNS[rank // 8 % 4], **look)
                for index in indices:
                    owners.setdefault(index, []).append(rank)
            ax.imshow(image.reshape(rows, columns, 3), interpolation="nearest", aspect="equal", zorder=0)
            if pixels >= 4 and not many:
                lines = {"colors": "white", "linewidth": 0.6, "zorder": 2.5}
                ax.vlines(np.arange(columns + 1) - 0.5, -0.5, rows - 0.5, **lines)
                ax.hlines(np.arange(rows + 1) - 0.5, -0.5, columns - 0.5, **lines)
            twice = [i for i in owners if counts[i] > 1]
            empty = [i for i in range(size) if not counts[i]]
            never = never or bool(empty)
            if many:
                _hatch(ax, twice, columns)
            else:
                _ring(ax, twice, owners, columns, pixels)
            _outline(ax, empty, columns, pixels)
            ax.set_title("\n".join(_headings(reading, epoch, shown, apart)))
            ax.spines[:].set_visible(False)
            ax.set_xticks([])
            ax.set_yticks([r for r in range(0, rows, max(1, rows // 5))])
            ax.set_yticklabels([str(r * columns) for r in ax.get_yticks()])
            ax.tick_params(length=0)
        for ax in list(grid.flat)[len(panels) :]:
            ax.set_visible(False)
        low = wide * rows / columns < 1.6
        for ax in grid[:, 0]:
            ax.set_ylabel("index of the row's\nfirst sample" if low else "index of the row's first sample")
        for place, ax in enumerate(grid.flat):
            if place + across >= len(panels):
                ax.set_xlabel("index, left to right" if wide > 1.5 else "index →")
        readers: list[Any] = []
        for rank in ranks:
            look = {"facecolor": rank_colour(rank), "edgecolor": "white", "linewidth": 0}
            readers.append(Patch(hatch=2 * SIGNS[rank // 8 % 4], label=f"rank {rank}", **look))
        legend(fig, readers + handles(most > 0, never, many))
    return fig


def _headings(reading: Reading, epoch: Any, shown: list[int], apart: bool) -> list[str]:
    parts = [] if epoch is None else [reading.called(epoch)]
    return parts + ([f"rank {listed(shown)}"] if apart else [])


def _ring(ax: Any, twice: list[int], owners: dict[int, list[int]], columns: int, pixels: float) -> None:
    """Part the squares of these samples between their readers and put a ring on each."""
    from matplotlib.patches import Rectangle

    for index in twice:
        row, column = divmod(index, columns)
        part = 1 / len(owners[index])
        for place, rank in enumerate(owners[index]):
            corner = (column - 0.5 + place * part, row - 0.5)
            ax.add_patch(Rectangle(corner, part, 1, facecolor=rank_colour(rank), linewidth=0, zorder=2))
    # larger than a small square, to be found
    look = {"s": (0.72 * max(9.0, 0.5 * pixels)) ** 2, "facecolor": "white", "edgecolor": "black", "linewidth": 1.5}
    ax.scatter([i % columns for i in twice], [i // columns for i in twice], zorder=4, clip_on=False, **look)


def _hatch(ax: Any, twice: list[int], columns: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    unit = Path.unit_rectangle()
    squares = (Affine2D().translate(i % columns - 0.5, i // columns - 0.5).transform_path(unit) for i in twice)
    path = Path.make_compound_path(*squares)
    ax.add_patch(PathPatch(path, facecolor="none", edgecolor=INK, hatch="////", linewidth=0, zorder=3))


def _outline(ax: Any, empty: list[int], columns: int, pixels: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    side = max(1.0, 9 / pixels) if len(empty) <= RINGS else 1.0
    squares = [Rectangle((i % columns - side / 2, i // columns - side / 2), side, side) for i in empty]
    width = 1.3 if len(empty) <= RINGS else 0.4
    look = {"facecolor": "white", "edgecolor": INK, "linewidth": width, "clip_on": False, "zorder": 3}
    ax.add_collection(PatchCollection(squares, **look))
