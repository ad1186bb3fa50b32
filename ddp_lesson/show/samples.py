"""Who read which sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .colours import INK, QUIET, rank_colour, rank_hatch
from .reading import Reading
from .signs import RING, handles, ink, note

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

FEW = 40  # up to here every sample gets a cell with a number in it
EPOCHS = 6  # more do not fit
INSIDE = {"ha": "center", "va": "center_baseline", "in_layout": False}  # the layout need not measure hundreds of texts


def plot_samples(run: Run, order: bool = False, name: str | None = None) -> Figure:
    """Draw which rank read which sample in which epoch, or in which order.

    Parameters
    ----------
    run : Run
        A run whose ranks called ``record(samples=indices, epoch=epoch)``; ``dataset_size=len(dataset)`` in any record
        says how many samples there are.
    order : bool
        False: dataset index against rank; a small dataset as a table, a large one as a mosaic of squares. True: the
        order of reading, one row of bars for each rank and epoch; equal orders look equal.
    name : str, optional
        Only records of this name, where a script records, say, training and evaluation.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the run recorded no samples, or under several names and none was chosen.
    """
    reading = Reading.of(run, name)
    epochs = reading.epochs[:EPOCHS]
    if order:
        return _draw_order(reading, epochs)
    if reading.size <= FEW:
        return _draw_grid(reading, epochs)
    from .mosaic import draw_mosaic

    return draw_mosaic(reading, epochs)


def _draw_grid(reading: Reading, epochs: list[Any]) -> Figure:
    from matplotlib.patches import Rectangle

    from .figure import card, legend, style

    size, ranks = reading.size, reading.ranks
    row = 0.34 if len(ranks) * len(epochs) <= 12 else 0.26
    font = 9 if size <= 24 else 7.5
    again = never = False
    with style():
        body = (row * len(ranks) + 0.12) * len(epochs) + 0.95
        fig = card(reading.map_title(), note(reading, epochs, "Number in a cell: the rank's 1st, 2nd, … read."), body)
        axes = fig.subplots(len(epochs), 1, sharex=True, squeeze=False)[:, 0]
        for ax, epoch in zip(axes, epochs, strict=True):
            counts = reading.counts(epoch)
            for place, rank in enumerate(ranks):
                turns: dict[int, list[int]] = {}
                for turn, index in enumerate(reading.orders[epoch][rank], 1):
                    turns.setdefault(index, []).append(turn)
                for index in range(size):
                    corner, box = (index - 0.46, place - 0.43), (0.92, 0.86)
                    if index in turns:
                        colour = rank_colour(rank)
                        ax.add_patch(Rectangle(corner, *box, facecolor=colour, hatch=rank_hatch(rank), linewidth=0))
                        twice = counts[index] > 1
                        again |= twice
                        text = ",".join(map(str, turns[index]))
                        shape = "circle,pad=0.18" if len(text) == 1 else "round,pad=0.18,rounding_size=0.7"
                        ring = {"boxstyle": shape, **RING}
                        look = {"color": "black", "bbox": ring} if twice else {"color": ink(colour)}
                        if rank_hatch(rank) and not twice:
                            look["bbox"] = {"boxstyle": "square,pad=0.25", "facecolor": colour, "linewidth": 0}
                        small = min(font, font * 3.2 / len(text)) if size > 12 else font
                        ax.text(index, place, text, size=small, **INSIDE, **look)
                    elif not counts[index]:
                        never = True
                        look = {"facecolor": "white", "edgecolor": INK, "linewidth": 1.3}
                        ax.add_patch(Rectangle(corner, *box, **look))
            ax.set_xlim(-0.5, size - 0.5)
            ax.set_ylim(len(ranks) - 0.5, -0.5)
            ax.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in ranks])
            ax.set_xticks(range(0, size, 1 if size <= 30 else 2))
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
            if epoch is not None:
                ax.set_ylabel(reading.called(epoch))
        axes[-1].set_xlabel("index of the sample in the dataset")
        legend(fig, handles(again, never))
    return fig


def _draw_order(reading: Reading, epochs: list[Any]) -> Figure:
    from matplotlib.patches import Rectangle

    from .figure import card, legend, style

    epochs = epochs[: max(2, 24 // len(reading.ranks))]
    longest = max(len(indices) for epoch in epochs for indices in reading.orders[epoch].values())
    digits = len(str(max(reading.size - 1, 0)))
    shown = min(longest, {1: 40, 2: 40, 3: 24, 4: 20}.get(digits, 14))
    lines = [(rank, epoch) for rank in reading.ranks for epoch in epochs]
    row = 0.46 if len(lines) <= 8 else 0.36
    gap = 0.35 if len(epochs) > 1 else 0.0
    again = False
    small_print = note(
        reading,
        epochs,
        f"Number and height of a bar: the index, 0 to {reading.size - 1}.",
        f"The first {shown} of {longest} reads of each rank." if shown < longest else "",
    )
    with style():
        fig = card(reading.order_title(), small_print, row * (len(lines) + gap * (len(reading.ranks) - 1)) + 0.9)
        ax = fig.add_subplot()
        ticks, bottom = [], 0.0
        for line, (rank, epoch) in enumerate(lines):
            bottom += 1 + (gap if line and lines[line - 1][0] != rank else 0)
            ticks.append(bottom - 0.4)
            counts = reading.counts(epoch)
            # the numbers stand below the line, the bars on it
            floor = bottom - 0.4
            ax.plot([0.5, shown + 0.5], [floor, floor], color=QUIET, linewidth=0.6, zorder=2)
            for turn, index in enumerate(reading.orders[epoch][rank][:shown], 1):
                height = 0.03 + 0.53 * index / max(1, reading.size - 1)
                look = {"facecolor": rank_colour(rank), "hatch": rank_hatch(rank), "linewidth": 0}
                ax.add_patch(Rectangle((turn - 0.44, floor - height), 0.88, height, **look))
                text: dict[str, Any] = {"size": 8 if shown <= 24 else 7}
                if counts[index] > 1:
                    again = True
                    text["bbox"] = {"boxstyle": "round,pad=0.15,rounding_size=0.6", **RING}
                ax.text(turn, bottom - 0.19, str(index), **INSIDE, **text)
        ax.set_xlim(0.5, shown + 0.5)
        ax.set_ylim(bottom + 0.06, -0.02)
        labels = [f"rank {rank}" + ("" if epoch is None else f", epoch {epoch}") for rank, epoch in lines]
        ax.set_yticks(ticks, labels)
        ax.set_xticks(range(1, shown + 1, 1 if shown <= 24 else 2))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xlabel("place in the order of reading (1: the rank's first sample)")
        legend(fig, handles(again, never=False))
    return fig
