"""What every rank held before a collective, and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .colours import FAINT, INK, QUIET, rank_colour, rank_hatch
from .signs import ink
from .words import capital, these_ranks

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

Values = list[float]
Held = dict[int, Values]

CLOSE = 1e-6  # sums of floats may differ in their last digits
MOST = 16  # boxes for each rank and column
INSIDE = {"ha": "center", "va": "center_baseline", "in_layout": False}


def plot_exchange(run: Run) -> Figure:
    """Draw what every rank held before a collective and after it.

    Parameters
    ----------
    run : Run
        A run whose ranks called ``record(name="before", values=[…])`` and ``record(name="after", values=[…])``. The
        last record of each name counts.

    Returns
    -------
    Figure
        A row for each rank; a box for each value. The colour of a rank: this rank alone held the value before, or it
        has kept it. Grey: computed, or not to be told.

    Raises
    ------
    ValueError
        If a rank did not record what it held before, or anything but numbers.
    """
    before, after = _held(run, "before"), _held(run, "after")
    missing = [rank for rank in range(run.nproc) if rank not in before]
    if missing:
        raise ValueError(
            f"{capital(these_ranks(missing))} recorded nothing before the exchange. "
            'Call record(name="before", values=tensor.tolist()), and the same with name="after" behind it.'
        )
    return _draw(before, after, sentence(before, after))


def _held(run: Run, name: str) -> Held:
    held: Held = {}
    for row in run.records:
        if row["name"] == name and row.get("kind") == "record" and "values" in row:
            values = row["values"] if isinstance(row["values"], list) else [row["values"]]
            if not values or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
                raise ValueError(f'"{name}" holds {row["values"]!r}: record a list of numbers, say tensor.tolist().')
            held[row["rank"]] = values
    return dict(sorted(held.items()))


def sentence(before: Held, after: Held) -> str:
    """What the exchange did, judged by the values alone.

    Parameters
    ----------
    before, after : dict
        Rank → values. A rank that is missing in `after` did not come back.
    """
    ranks = list(before)
    lost = [rank for rank in ranks if rank not in after]
    if lost:
        who = "No rank came" if len(lost) == len(ranks) else f"{capital(these_ranks(lost))} did not come"
        return f"{who} back from the exchange"
    if all(_same(before[rank], after[rank]) for rank in ranks):
        return "Nothing moved: every rank holds what it held"
    if all(_same(after[rank], after[ranks[0]]) for rank in ranks):
        return f"Every rank holds {_meaning(before, after[ranks[0]])}"
    shares = _shares(before, after)
    if shares:
        return shares
    changed = [rank for rank in ranks if not _same(before[rank], after[rank])]
    if len(changed) == 1:
        meaning = _meaning(before, after[changed[0]])
        return f"Only rank {changed[0]} holds {meaning}" if meaning != "the same" else f"Only rank {changed[0]} changed"
    return "The ranks hold different values afterwards"


def _meaning(before: Held, values: Values) -> str:
    """What these values are, seen from all that was held before."""
    owners = [rank for rank in before if _same(before[rank], values)]
    computed = [words for words, expected in _computed(before).items() if _same(expected, values)]
    if len(owners) == 1:
        # zeros on all ranks but one: its values are the sum as well
        also = ", which is also the sum" if "the sum" in computed else ""
        return f"what rank {owners[0]} held{also}"
    if _same([v for rank in before for v in before[rank]], values):
        return "everything, in rank order"
    return computed[0] if computed else "the same"


def _computed(before: Held) -> dict[str, Values]:
    if len({len(values) for values in before.values()}) != 1:
        return {}
    columns = list(zip(*before.values(), strict=True))
    total = [sum(column) for column in columns]
    results = {"the sum": total, "the mean": [value / len(before) for value in total]}
    return results | {"the largest": [max(c) for c in columns], "the smallest": [min(c) for c in columns]}


def _shares(before: Held, after: Held) -> str | None:
    """A sentence if every rank has its own part of a whole."""
    ranks = list(before)
    parts = [after[rank] for rank in ranks]
    whole = [v for part in parts for v in part]
    if len({len(part) for part in parts}) != 1:
        return None
    computed = _computed(before)
    for words in ("the sum", "the mean"):
        if words in computed and _same(computed[words], whole):
            return f"Every rank holds its part of {words}"
    for rank in ranks:
        if _same(before[rank], whole):
            return f"Every rank holds its part of what rank {rank} held"
    size = len(parts[0]) // len(ranks)
    if size and all(
        _same([v for giver in ranks for v in before[giver][place * size : (place + 1) * size]], after[rank])
        for place, rank in enumerate(ranks)
    ):
        return "Every rank has sent a part to every rank"
    if all(_same(before[ranks[place - 1]], after[rank]) for place, rank in enumerate(ranks)):
        return "Every rank holds what the rank before it held"
    return None


def _same(a: Sequence[float], b: Sequence[float]) -> bool:
    if len(a) != len(b):
        return False
    return all(x == y or abs(x - y) <= CLOSE * max(abs(x), abs(y)) for x, y in zip(a, b, strict=True))


def _owner(before: Held, rank: int, place: int, values: Values) -> int | None:
    """The rank whose value stands at this place; None if it was computed or several held it."""
    value = values[place]
    whole = [holder for holder in before if before[holder] == values]
    if len(whole) == 1:
        return whole[0]
    computed = _computed(before)
    if computed and (_same(computed["the sum"], values) or _same(computed["the mean"], values)):
        return None
    holders = [holder for holder, held in before.items() if value in held]
    if len(holders) == 1:
        return holders[0]
    return rank if place < len(before[rank]) and before[rank][place] == value else None


def _text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e6 else f"{value:.3g}"


def _draw(before: Held, after: Held, title: str) -> Figure:
    from matplotlib.patches import Patch

    from .figure import card, legend, style

    ranks = list(before)
    longest = [min(MOST, max(map(len, held.values()), default=1)) for held in (before, after)]
    cut = max(map(len, [*before.values(), *after.values()])) > MOST
    font = 10 if max(longest) <= 8 else 8
    signs: Counter[str] = Counter()
    with style():
        fig = card(title, f"The first {MOST} values of each rank." if cut else "", 0.42 * len(ranks) + 0.75)
        ax = fig.add_subplot()
        gap = 1.6 if sum(longest) <= 12 else 3.0
        right = longest[0] + gap
        for place, rank in enumerate(ranks):
            for left, values, own in ((0.0, before[rank], True), (right, after.get(rank), False)):
                if values is None:
                    signs["lost"] += 1
                    _box(ax, left, place, facecolor="white", edgecolor=INK, linestyle="--", linewidth=1.2)
                    continue
                for i, value in enumerate(values[:MOST]):
                    owner = rank if own else _owner(before, rank, i, values)
                    signs["computed"] += owner is None
                    colour = FAINT if owner is None else rank_colour(owner)
                    _box(
                        ax,
                        left + i,
                        place,
                        facecolor=colour,
                        linewidth=0,
                        hatch="" if owner is None else rank_hatch(owner),
                    )
                    ax.text(left + i + 0.5, place, _text(value), size=font, color=ink(colour), **INSIDE)
            arrow = {"arrowstyle": "-|>", "color": QUIET, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
            start, stop = longest[0] + 0.15 * gap, right - 0.15 * gap
            ax.annotate("", (stop, place), (start, place), arrowprops=arrow)
        ax.set_xlim(-0.1, right + longest[1] + 0.1)
        ax.set_ylim(len(ranks) - 0.45, -0.55)
        ax.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in ranks])
        ax.set_xticks([longest[0] / 2, right + longest[1] / 2], ["before", "after"])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        handles = [Patch(facecolor=rank_colour(r), hatch=rank_hatch(r), label=f"held by rank {r}") for r in ranks[:8]]
        if signs["computed"]:
            handles.append(Patch(facecolor=FAINT, label="computed"))
        if signs["lost"]:
            look = {"facecolor": "white", "edgecolor": INK, "linestyle": "--"}
            handles.append(Patch(**look, label="did not come back"))
        legend(fig, handles)
    return fig


def _box(ax: Any, left: float, place: int, **look: Any) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((left + 0.03, place - 0.42), 0.94, 0.84, **look))
