"""A run that was restarted: what each attempt did."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .colours import FAINT, INK, QUIET, RANKS
from .words import capital, count, listed

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

Curve = dict[int, float]


def plot_attempts(run: Run, name: str = "loss", *, reference: Run | None = None) -> Figure:
    """Draw a recorded value over steps, averaged over ranks, each attempt as a line of its own.

    Parameters
    ----------
    run : Run
        A run whose ranks called ``record(step=step, loss=loss)``.
    name : str
        The value.
    reference : Run, optional
        A run that was not interrupted, drawn below as a broad line.

    Raises
    ------
    ValueError
        If the value was not recorded together with a step.
    """
    attempts = curves(run, name)
    whole = curves(reference, name) if reference is not None else {}
    return _draw(name, attempts, whole[max(whole)] if whole else None)


def curves(run: Run, name: str) -> dict[int, Curve]:
    """Attempt → step → the mean over the ranks that recorded it."""
    found: dict[int, dict[int, list[float]]] = {}
    for row in run.records:
        if row.get("kind") == "record" and "step" in row and name in row:
            found.setdefault(row.get("attempt", 0), {}).setdefault(row["step"], []).append(row[name])
    if not found:
        raise ValueError(f'This run recorded no "{name}" with a step; see `record(step=step, {name}={name})`.')
    return {
        attempt: {step: sum(values) / len(values) for step, values in sorted(by_step.items())}
        for attempt, by_step in sorted(found.items())
    }


def _sentence(name: str, attempts: dict[int, Curve], whole: Curve | None) -> str:
    first, *later = attempts
    parts = [f"attempt {first} ends after step {max(attempts[first])}"]
    parts += [f"attempt {n} goes on from step {min(attempts[n])}" for n in later]
    text = ", ".join(parts) if later else parts[0]
    if whole:
        last = attempts[max(attempts)]
        end = max(last)
        same = end == max(whole) and last[end] == whole[end]
        text += f" and ends with {'exactly the' if same else 'another'} {name} {'of' if same else 'than'} the "
        text += "uninterrupted run"
    return text


def _draw(name: str, attempts: dict[int, Curve], whole: Curve | None) -> Figure:
    from matplotlib.ticker import MaxNLocator

    from .figure import card, legend, style

    numbers = list(attempts)
    pairs = pairwise(numbers)
    twice = sorted({step for old, new in pairs for step in attempts[old] if step in attempts[new]})
    note = f"Done twice: {count(len(twice), 'step')} since the last checkpoint ({listed(twice)})." if twice else ""
    handles: list[Any] = []
    with style():
        fig = card(capital(_sentence(name, attempts, whole)), note if len(twice) < 9 else "", 3.0)
        ax = fig.subplots()
        if whole:
            look: dict[str, Any] = {"color": "#C9C9C9", "linewidth": 7, "solid_capstyle": "round"}
            handles += ax.plot(list(whole), list(whole.values()), label="uninterrupted", zorder=1, **look)
        for place, (number, curve) in enumerate(attempts.items()):
            look = {"color": RANKS[(4, 3, 2)[place % 3]], "marker": "ox^"[place % 3], "markersize": 5, "zorder": 3}
            handles += ax.plot(list(curve), list(curve.values()), label=f"attempt {number}", **look)
            if number != numbers[-1]:
                ax.axvline(max(curve) + 0.5, color=QUIET, linewidth=0.8, linestyle="--", zorder=2)
        ax.set(xlabel="step", ylabel=f"{name}, mean over ranks")
        ax.yaxis.label.set_color(INK)
        ax.grid(axis="y", color=FAINT)
        ax.set_axisbelow(True)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend(fig, handles)
    return fig
