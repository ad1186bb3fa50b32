"""Memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .colours import INK, rank_colour, rank_dash
from .words import capital, these_ranks, which_ranks

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

Curve = list[tuple[float, float]]

MIB = 2**20
_SOURCES = {"process": "process memory", "allocated": "allocated memory"}


def plot_memory(run: Run) -> Figure:
    """Draw the memory of each rank over time and mark the highest peak.

    Parameters
    ----------
    run : Run
        A run with memory records.

    Returns
    -------
    Figure
        MiB against seconds since the launch. The axis says what was measured: ``process memory`` (everything the
        process holds, libraries included) or ``allocated memory`` (tensors only). Both get axes of their own.

    Raises
    ------
    ValueError
        If no memory was recorded.
    """
    rows = [row for row in run.records if row.get("kind") == "memory" and isinstance(row.get("bytes"), (int, float))]
    if not rows:
        raise ValueError("This run recorded no memory. Put the steps into `with MemoryMeter(model, optimizer):`.")
    sources: dict[str, dict[int, Curve]] = {}
    for row in rows:
        by_rank = sources.setdefault(row.get("source", "process"), {})
        by_rank.setdefault(row["rank"], []).append((row["t"], row["bytes"] / MIB))
    return _draw({source: dict(sorted(by_rank.items())) for source, by_rank in sorted(sources.items())}, run.nproc)


def _mib(value: float) -> str:
    return f"{value:.0f} MiB" if value >= 99.5 else f"{value:.3g} MiB"


def _span(values: list[float]) -> str:
    low, high = _mib(min(values)), _mib(max(values))
    return high if low == high else f"{low.removesuffix(' MiB')} to {high}"


def _sentence(what: str, curves: dict[int, Curve], world: int) -> str:
    peaks = {rank: max(value for _, value in points) for rank, points in curves.items()}
    top = max(peaks, key=lambda rank: peaks[rank])
    lowest, highest = min(peaks.values()), peaks[top]
    if len(peaks) == 1:
        first = curves[top][0][1]
        grown = f", {_mib(highest - first)} above its start" if highest > first else " and does not grow"
        return f"{what} of rank {top} peaks at {_mib(highest)}{grown}"
    if highest - lowest <= 0.02 * highest:
        peak = _span([lowest, highest])
        grown = max(peaks[rank] - points[0][1] for rank, points in curves.items())
        more = f", up to {_mib(grown)} above their start" if grown > 0 else " and does not grow"
        return f"{what} of {which_ranks(list(peaks), world)} peaks at {peak}{more}"
    rest = sorted(set(peaks) - {top})
    span = _span([peaks[rank] for rank in rest])
    return f"{what} peaks on rank {top}, at {_mib(highest)}; on {these_ranks(rest)} at {span}"


def _floor(curves: dict[int, Curve]) -> float:
    """Where the axis begins, in MiB: at 0, unless the changes would then be too small to see."""
    values = [value for points in curves.values() for _, value in points]
    low, high = min(values), max(values)
    return 0.0 if high == low or high - low > 0.15 * high else max(0.0, low - 0.3 * (high - low))


def _draw(sources: dict[str, dict[int, Curve]], world: int) -> Figure:
    from matplotlib.markers import CARETDOWN

    from .figure import card, legend, style

    called = {source: _SOURCES.get(source, f"{source} memory") for source in sources}
    title = "; ".join(_sentence(called[source], curves, world) for source, curves in sources.items())
    notes = []
    if "process" in sources:
        notes.append("Process memory: everything the process holds, Python and torch themselves included.")
    if "allocated" in sources:
        notes.append("Allocated memory: tensors only.")
    floors = {source: _floor(curves) for source, curves in sources.items()}
    if any(floors.values()):
        notes.append("The axis does not begin at 0.")
    handles: dict[int, Any] = {}
    with style():
        fig = card(capital(title), " ".join(notes), 2.7 * len(sources) + 0.6)
        axes = fig.subplots(len(sources), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (source, curves) in zip(axes, sources.items(), strict=True):
            top = max(((value, t, rank) for rank, points in curves.items() for t, value in points))
            for rank, points in curves.items():
                xs, ys = [t for t, _ in points], [value for _, value in points]
                look: dict[str, Any] = {"color": rank_colour(rank), "linestyle": rank_dash(rank), "linewidth": 1.6}
                if len(xs) <= 40:
                    look |= {"marker": "o", "markersize": 3}
                label = f"rank {rank}, peak {_mib(max(ys))}" if len(sources) == 1 else f"rank {rank}"
                handles[rank] = ax.plot(xs, ys, drawstyle="steps-post", label=label, **look)[0]
            value, t, rank = top
            ax.plot([t], [value], marker=CARETDOWN, markersize=9, color=INK, linestyle="none", zorder=4)
            low, high = ax.get_xlim()
            side = "right" if t > (low + high) / 2 else "left"
            text = f"peak {_mib(value)}, rank {rank}"
            ax.annotate(text, (t, value), (0, 10), textcoords="offset points", ha=side, va="bottom", fontweight="bold")
            ax.set_ylim(floors[source], value + 0.2 * (value - floors[source]) or 1)
            ax.set_ylabel(f"{called[source]} (MiB)")
            ax.grid(axis="y")
            ax.set_axisbelow(True)
        axes[-1].set_xlabel("time since launch (s)")
        legend(fig, [handles[rank] for rank in sorted(handles)])
    return fig
