"""Recorded values against steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .colours import INK, rank_colour, rank_dash
from .words import capital, listed, pair, short, these_ranks, which_ranks

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

Curve = tuple[list[float], list[float]]

_FRAME = {"rank", "t", "name", "kind", "step", "total", "epoch", "dataset_size", "samples"}
_UNITS = {"_s": "s", "_ms": "ms", "_us": "µs", "_bytes": "bytes", "_mib": "MiB", "_gib": "GiB"}


def plot(run: Run, *names: str) -> Figure:
    """Draw recorded values against the step, for each rank and averaged over ranks.

    Parameters
    ----------
    run : Run
        A run whose ranks called, say, ``record(loss=loss, step=step)``.
    *names : str
        The values, ``"loss"`` if none is named; each gets axes of its own.

    Returns
    -------
    Figure
        The horizontal axis is the step if every record of the values has one and no rank counts them anew, else the
        number of the record.

    Raises
    ------
    ValueError
        If a value was not recorded, or not as a number.
    """
    rows = [row for row in run.records if row.get("kind") == "record"]
    there = sorted({key for row in rows for key, value in row.items() if key not in _FRAME and _is_number(value)})
    curves = {}
    for name in names or ("loss",):
        found = [row for row in rows if name in row]
        if not found:
            have = (
                f"it recorded {listed(there)}" if there else "it recorded no values; see `record(loss=loss, step=step)`"
            )
            raise ValueError(f'This run recorded no value "{name}": {have}.')
        found = [row for row in found if _is_number(row[name])]
        if not found:
            have = f" Numbers are {listed(there)}." if there else ""
            raise ValueError(f'"{name}" was not recorded as a number.{have}')
        curves[name] = found
    by_step = all(_counts_on(found) for found in curves.values())
    return _draw({name: _by_rank(found, name, by_step) for name, found in curves.items()}, run.nproc, by_step)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _counts_on(rows: list[dict[str, Any]]) -> bool:
    """True if every record has a step and no rank has one twice."""
    steps = [(row["rank"], row["step"]) for row in rows if _is_number(row.get("step"))]
    return len(steps) == len(rows) and len(set(steps)) == len(steps)


def _by_rank(rows: list[dict[str, Any]], name: str, by_step: bool) -> dict[int, Curve]:
    curves: dict[int, Curve] = {}
    for row in rows:
        xs, ys = curves.setdefault(row["rank"], ([], []))
        xs.append(row["step"] if by_step else len(xs))
        ys.append(row[name])
    return {rank: curves[rank] for rank in sorted(curves)}


def _mean(curves: dict[int, Curve]) -> Curve:
    """The mean over ranks, only where every rank has a value."""
    tables = [dict(zip(xs, ys, strict=True)) for xs, ys in curves.values()]
    common = sorted(set.intersection(*(set(table) for table in tables)))
    return common, [sum(table[x] for table in tables) / len(tables) for x in common]


def _sentence(name: str, curves: dict[int, Curve], world: int, x_name: str) -> str:
    broken = {rank: [x for x, y in zip(*curve, strict=True) if not math.isfinite(y)] for rank, curve in curves.items()}
    if any(broken.values()):
        first = min(xs[0] for xs in broken.values() if xs)
        there = [rank for rank, xs in broken.items() if first in xs]
        # "on" only if no finite value follows
        stays = all(math.isfinite(y) is (x < first) for rank in there for x, y in zip(*curves[rank], strict=True))
        when = f"from {x_name} {first} on" if stays else f"at {x_name} {first}"
        return f"{name} is {short(_at(curves[there[0]], [first])[0])} on {which_ranks(there, world)} {when}"
    xs, ys = _mean(curves)
    if not xs:
        return f"{name}: no {x_name} was recorded by all ranks"
    ranks = list(curves)
    among = f" on {these_ranks(ranks)}" if len(ranks) == 1 < world else ""
    if len(ranks) > 1:
        apart = max(max(v) - min(v) for v in zip(*(_at(curve, xs) for curve in curves.values()), strict=True))
        alike = f", the same on {which_ranks(ranks, world)}"
        among = alike if apart == 0 else f" on average; {which_ranks(ranks, world)} are up to {short(apart, 2)} apart"
    low, high = min(ys), max(ys)
    if len(xs) == 1 or low == high:
        what = f"{name} is {short(ys[0])}"
    elif abs(ys[-1] - ys[0]) >= max(0.25 * (high - low), 0.02 * max(abs(low), abs(high))):
        begin, end = pair(ys[0], ys[-1])
        what = f"{name} {'falls' if ys[-1] < ys[0] else 'rises'} from {begin} to {end}"
    else:
        bottom, top = pair(low, high)
        what = f"{name} stays between {bottom} and {top}" if bottom != top else f"{name} stays at {top}"
    return what + among


def _at(curve: Curve, xs: list[float]) -> list[float]:
    table = dict(zip(*curve, strict=True))
    return [table[x] for x in xs]


def _label(name: str) -> str:
    unit = next((unit for end, unit in _UNITS.items() if name.lower().endswith(end)), None)
    return f"{name} ({unit})" if unit else name


def _draw(values: dict[str, dict[int, Curve]], world: int, by_step: bool) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    from .figure import card, legend, style

    x_name = "step" if by_step else "record"
    title = "; ".join(_sentence(name, curves, world, x_name) for name, curves in values.items())
    handles: dict[str, Any] = {}
    crosses = mean = None
    with style():
        fig = card(capital(title), "", 2.5 * len(values) + 0.6)
        axes = fig.subplots(len(values), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (name, curves) in zip(axes, values.items(), strict=True):
            for rank, (xs, ys) in curves.items():
                look: dict[str, Any] = {"color": rank_colour(rank), "linestyle": rank_dash(rank), "linewidth": 1.6}
                if len(xs) <= 30:
                    look |= {"marker": "o", "markersize": 3.5}
                handles[f"rank {rank}"] = ax.plot(xs, ys, label=f"rank {rank}", **look)[0]
                broken = [x for x, y in zip(xs, ys, strict=True) if not math.isfinite(y)]
                if broken:
                    # one cannot draw them: crosses on the axis, the ranks one above the other
                    heights = [0.04 + 0.05 * (len(handles) - 1)] * len(broken)
                    cross = {"marker": "x", "linestyle": "none", "color": rank_colour(rank), "markeredgewidth": 1.8}
                    ax.plot(broken, heights, transform=ax.get_xaxis_transform(), **cross)
                    crosses = Line2D([], [], **cross | {"color": INK}, label="NaN or infinite")
            if len(curves) > 1:
                xs, ys = _mean(curves)
                look = {"color": INK, "linewidth": 2.0, "zorder": 3, "label": "mean over ranks"}
                if len(xs) == 1:
                    look |= {"marker": "D", "markersize": 5}
                mean = ax.plot(xs, ys, **look)[0]
            ax.set_ylabel(_label(name))
            ax.grid(axis="y")
            ax.set_axisbelow(True)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[-1].set_xlabel("step" if by_step else "number of the record on its rank")
        legend(fig, [handle for handle in [*handles.values(), mean, crosses] if handle])
    return fig
