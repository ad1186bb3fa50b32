"""When each rank did what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .colours import FAINT, QUIET, phase_colours
from .spans import ALL_REDUCE, Interval, Span, backwards, end, note, reduces_of, select, title

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

    from .figure import Figure

LANES = 8  # more all-reduces at a time share the last one
CROSS = {"color": "black", "marker": "x", "markersize": 8, "markeredgewidth": 2.5, "linestyle": "none"}


def plot_timeline(run: Run, steps: int | Iterable[int] | None = None) -> Figure:
    """Draw the spans of every rank against time.

    Parameters
    ----------
    run : Run
        A run whose script used ``span``.
    steps : int or iterable of int, optional
        The steps to show. Without it three of them, from step 3 on, or everything if no span has a ``step``.

    Returns
    -------
    Figure
        One row per rank, time in ms; all-reduce has a lane of its own below the row. The part of backward after the
        last bucket was handed to all-reduce is hatched: the gradients are computed, the rank waits.

    Raises
    ------
    ValueError
        If no span was recorded, or none of the steps asked for.
    """
    spans = [row for row in run.records if row.get("kind") == "span" and isinstance(row.get("duration"), (int, float))]
    if not spans:
        raise ValueError(
            'This run recorded no span. Put the phases of the loop into `with span("forward"):` and so on.'
        )
    shown, chosen = select(spans, [steps] if isinstance(steps, int) else steps)
    ranks = sorted({*range(run.nproc), *(span["rank"] for span in spans)})
    return _draw(shown, chosen, ranks, title(shown, ranks), note(spans, shown, chosen))


def _lanes(spans: list[Span]) -> list[int]:
    """A lane for each span so that none covers another."""
    ends: list[float] = []
    places = []
    for span in spans:
        free = next((i for i, taken in enumerate(ends) if taken <= span["t"]), len(ends))
        ends[free : free + 1] = [end(span)]
        places.append(min(free, LANES - 1))
    return places


def _draw(spans: list[Span], steps: list[int], ranks: list[int], sentence: str, small_print: str) -> Figure:
    from .figure import DPI, WIDTH, card, legend, style

    colours = phase_colours([span["name"] for span in spans])
    origin = min(span["t"] for span in spans)
    extent = max(1e-6, 1e3 * (max(end(span) for span in spans) - origin))
    per_ms = (WIDTH - 1.0) * DPI / extent  # pixels
    lanes = {rank: _lanes(reduces_of(spans, rank)) for rank in ranks}
    number = max((place + 1 for places in lanes.values() for place in places), default=0)
    # inches: the row of a rank holds the number of the step, the bar, and the lanes of all-reduce
    many = len(ranks) > 4
    above, bar, lane = 0.2, 0.26 if many else 0.36, (0.14 if many else 0.19) if number <= 2 else 0.08 if many else 0.12
    row = above + bar + 0.03 + lane * number + 0.06
    signs = set()
    with style():
        fig = card(sentence, small_print, row * len(ranks) + 0.75)
        ax = fig.add_subplot()
        for place, rank in enumerate(ranks):
            mine = [span for span in spans if span["rank"] == rank]
            top = place * row
            if place:
                ax.axhline(top, color=FAINT, linewidth=0.8, zorder=0)
            strip = _Strip(ax, origin, per_ms, top + above, bar)
            for start, done, stop in backwards(spans, rank):
                strip.add(start, done, color=colours["backward"], zorder=2)
                if done < stop:
                    signs.add("waits")
                    strip.add(done, stop, zorder=2, **_hatched(colours))
            # long spans first: what lies inside another stays visible
            for span in sorted(mine, key=lambda span: -span["duration"]):
                if span["name"] not in ("backward", ALL_REDUCE):
                    strip.add(span["t"], end(span), color=colours[span["name"]], zorder=1.5)
                if span.get("failed"):
                    signs.add("failed")
                    ax.plot(strip.x(end(span)), top + above + bar / 2, clip_on=False, zorder=4, **CROSS)
            for span, lane_number in zip(reduces_of(spans, rank), lanes[rank], strict=True):
                strip = _Strip(ax, origin, per_ms, top + above + bar + 0.03 + lane_number * lane, lane)
                strip.add(span["t"], end(span), color=colours[ALL_REDUCE], zorder=2, edgecolor="white", linewidth=0.6)
                if lane > 0.1 and strip.label(span, str(span.get("bucket", "")), 8 if lane > 0.15 else 6.5):
                    signs.add("numbers")
            _mark_steps(ax, mine, steps, (top + 0.04, top + row - 0.04), origin, per_ms)
        ax.set_xlim(0, extent * 1.005)
        ax.set_ylim(len(ranks) * row, 0)
        ticks = [place * row + above + bar / 2 for place in range(len(ranks))]
        ax.set_yticks(ticks, [f"rank {rank}" for rank in ranks])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        first = spans[0]
        since = f"step {first['step']}" if "step" in first and first["name"] != ALL_REDUCE else "the first span"
        ax.set_xlabel(f"time since {since} began (ms)")
        legend(fig, _handles(colours, signs))
    return fig


class _Strip:
    """A horizontal strip for spans; y and height in inches, times in s since the launch."""

    def __init__(self, ax: Any, origin: float, per_ms: float, y: float, height: float) -> None:
        self.ax, self.origin, self.per_ms, self.y, self.height = ax, origin, per_ms, y, height

    def x(self, t: float) -> float:
        return 1e3 * (t - self.origin)

    def add(self, start: float, stop: float, color: str = "", **look: Any) -> None:
        from matplotlib.patches import Rectangle

        if color:
            look = {"facecolor": color, "linewidth": 0} | look
        # a span thinner than a pixel would vanish
        width = max(1e3 * (stop - start), 1 / self.per_ms)
        self.ax.add_patch(Rectangle((self.x(start), self.y), width, self.height, **look))

    def label(self, span: Span, text: str, size: float) -> bool:
        """Write into a span if there is room."""
        if not text or 1e3 * span["duration"] * self.per_ms < 6 + 7 * len(text):
            return False
        look = {"size": size, "ha": "center", "va": "center_baseline", "color": "white"}
        self.ax.text(self.x(span["t"] + span["duration"] / 2), self.y + self.height / 2, text, **look)
        return True


def _hatched(colours: dict[str, str]) -> dict[str, Any]:
    return {"facecolor": "white", "edgecolor": colours["backward"], "hatch": "////", "linewidth": 0}


def _handles(colours: dict[str, str], signs: set[str]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for name, colour in colours.items():
        label = "all-reduce (number: bucket)" if name == ALL_REDUCE and "numbers" in signs else name
        handles.append(Patch(color=colour, label=label))
        if name == "backward" and "waits" in signs:
            label = "backward, waiting for all-reduce"
            handles.append(Patch(**_hatched(colours) | {"linewidth": 0.8}, label=label))
    if "failed" in signs:
        handles.append(Line2D([], [], label="failed", **CROSS))
    return handles


def _mark_steps(ax: Any, spans: list[Span], steps: list[int], reach: Interval, origin: float, per_ms: float) -> None:
    """A thin line where a step of this rank begins, with its number where there is room."""
    own = [span for span in spans if span["name"] != ALL_REDUCE and "step" in span] or spans
    begins = {step: [span["t"] for span in own if span.get("step") == step] for step in steps}
    times = sorted((min(found), step) for step, found in begins.items() if found)
    ends = [start for start, _ in times[1:]] + [max(end(span) for span in spans)] if times else []
    for (start, step), stop in zip(times, ends, strict=True):
        x = 1e3 * (start - origin)
        ax.plot([x, x], reach, color=QUIET, linewidth=0.7, zorder=3)
        if 1e3 * (stop - start) * per_ms > 50:
            ax.text(x + 4 / per_ms, reach[0] + 0.07, f"step {step}", size=7.5, color=QUIET, va="center_baseline")
