"""How much more work several ranks do in the same time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .colours import INK, QUIET, RANKS
from .words import count, listed

if TYPE_CHECKING:
    from .figure import Figure

STRONG, WEAK, ALONE = RANKS[3], RANKS[2], RANKS[4]


def plot_scaling(
    strong: Mapping[int, float],
    weak: Mapping[int, float] | None = None,
    *,
    alone: float | None = None,
    cores: int | None = None,
) -> Figure:
    """Draw the work done in the same time against the number of ranks, one rank being 1.

    Parameters
    ----------
    strong : mapping of int to float
        Ranks → seconds for a step with the same global batch. It must hold one rank.
    weak : mapping of int to float, optional
        Ranks → seconds for a step with the same batch per rank.
    alone : float, optional
        Seconds for the step of `strong` in one process that uses all cores: what several ranks must beat.
    cores : int, optional
        The machine's cores. Default: ``os.cpu_count()``.

    Returns
    -------
    Figure
        More ranks than cores stand on a grey ground.

    Raises
    ------
    ValueError
        If the time of one rank is missing, or a time is not above 0.
    """
    cores = cores or os.cpu_count() or 1
    panels = {"strong scaling: the global batch stays": speed_up(strong, work=False)}
    if weak:
        panels["weak scaling: the batch per rank stays"] = speed_up(weak, work=True)
    if alone is not None and alone <= 0:
        raise ValueError(f"alone is {alone}: a time must be above 0 seconds.")
    bar = None if alone is None else strong[1] / alone
    return _draw(panels, bar, cores)


def speed_up(seconds: Mapping[int, float], work: bool) -> dict[int, float]:
    """Work done in the same time, one rank being 1.

    Parameters
    ----------
    seconds : mapping of int to float
        Ranks → seconds for a step.
    work : bool
        True where every rank has the same work, so that more ranks do more of it in a step.
    """
    if 1 not in seconds:
        raise ValueError("The time of 1 rank is missing: the others are compared with it.")
    for ranks, time in seconds.items():
        if not time > 0:
            raise ValueError(f"The time of {count(ranks, 'rank')} is {time}: it must be above 0 seconds.")
    return {n: (n if work else 1) * seconds[1] / seconds[n] for n in sorted(seconds)}


def _sentence(panels: dict[str, dict[int, float]], cores: int) -> str:
    parts = []
    for name, gains in panels.items():
        several = [n for n in gains if n > 1]
        if not several:
            return f"One rank on {count(cores, 'core')}: nothing to compare it with"
        values = listed([f"{gains[n]:.1f}" for n in several])
        parts.append(f"{values} times the work of one ({name.partition(' ')[0]})")
    ranks = listed(several)
    return f"On {count(cores, 'core')}, {ranks} ranks do {' and '.join(parts)}"


def _draw(panels: dict[str, dict[int, float]], bar: float | None, cores: int) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from .figure import card, legend, style

    most = max(max(gains) for gains in panels.values())
    top = 1.12 * max(most, bar or 0, *(value for gains in panels.values() for value in gains.values()))
    ideal: dict[str, Any] = {"color": QUIET, "linestyle": "--", "linewidth": 1.2}
    reference: dict[str, Any] = {"color": ALONE, "linestyle": ":", "linewidth": 2.0}
    with style():
        fig = card(_sentence(panels, cores), "Work in the same time, compared with one rank on one thread.", 3.1)
        axes = fig.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for ax, (name, gains), colour in zip(axes, panels.items(), (STRONG, WEAK), strict=False):
            if cores < most:
                ax.axvspan(cores + 0.5, most + 0.5, facecolor="#F0F0F0", linewidth=0, zorder=0)
            ax.plot([1, most], [1, most], **ideal)
            if bar is not None:
                ax.axhline(bar, **reference)
            ax.plot(list(gains), list(gains.values()), color=colour, marker="o", linewidth=2, zorder=3)
            for n, gain in gains.items():
                # below the point, since the ideal line runs above it; but not on the axis
                dy, va = (7, "bottom") if gain < 0.2 * top else (-8, "top")
                look = {"ha": "center", "va": va, "zorder": 4}
                box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
                ax.annotate(f"{gain:.1f}", (n, gain), (0, dy), textcoords="offset points", bbox=box, **look)
            ax.set(title=name, xlabel="ranks", xlim=(0.5, most + 0.5), ylim=(0, top))
            ax.set_xticks(list(gains))
            ax.grid(axis="y")
            ax.set_axisbelow(True)
        axes[0].set_ylabel("times the work of one rank")
        handles = [Line2D([], [], label="measured", color=INK, marker="o"), Line2D([], [], label="ideal", **ideal)]
        if bar is not None:
            handles.append(Line2D([], [], label=f"one process, {count(cores, 'thread')}", **reference))
        if cores < most:
            handles.append(Patch(facecolor="#F0F0F0", label=f"more ranks than the {count(cores, 'core')}"))
        legend(fig, handles)
    return fig
