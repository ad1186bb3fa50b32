"""Spans as numbers and as sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .words import capital, count, listed, short, these_ranks, which_ranks
from .words import steps as numbered

Span = dict[str, Any]
Interval = tuple[float, float]

ALL_REDUCE = "all-reduce"
FIRST, SHOWN = 3, 3  # DDP puts every gradient into one bucket at first; from step 3 on the buckets are final


def select(spans: list[Span], steps: Iterable[int] | None) -> tuple[list[Span], list[int]]:
    """The spans to show and the steps they belong to (none if spans have no step)."""
    counted = [span for span in spans if isinstance(span.get("step"), int)]
    # a script may count its steps anew in every epoch while all-reduce counts on: go by the script's own spans
    own = [span for span in counted if span["name"] != ALL_REDUCE] or counted
    have = sorted({span["step"] for span in own})
    if steps is None:
        # a failed span is what one looks for
        until = max((span["step"] for span in own if span.get("failed")), default=None)
        before = have if until is None else [step for step in have if step <= until][-SHOWN:]
        wanted = [step for step in before if step >= FIRST][:SHOWN] or before[-SHOWN:]
    else:
        asked = sorted(set(steps))
        wanted = [step for step in asked if step in have]
        if not wanted:
            there = f"there are steps {have[0]} to {have[-1]}" if have else "the spans of this run have no step"
            raise ValueError(f"No span of step {listed(asked) if asked else '(none given)'} was recorded: {there}.")
    if not wanted:
        return spans, []

    passes: dict[int, int] = {}
    last: dict[int, int] = {}
    inside = []
    for span in sorted(own, key=lambda span: span["t"]):
        rank, step = span["rank"], span["step"]
        passes[rank] = passes.get(rank, 0) + (step < last.get(rank, step))
        last[rank] = step
        if step in wanted:
            inside.append((passes[rank], span))
    failed = [number for number, span in inside if span.get("failed")]
    pick = max(failed) if failed else min(number for number, _ in inside)
    chosen = [span for number, span in inside if number == pick]

    # beside them, what these ranks did at the same time: all-reduce, and spans without a step
    taken = {id(span) for span in own}
    windows: dict[int, Interval] = {}
    for span in chosen:
        low, high = windows.get(span["rank"], (span["t"], span["t"]))
        windows[span["rank"]] = (min(low, span["t"]), max(high, end(span)))
    shown = list(chosen)
    for rank, (low, high) in windows.items():
        # the last all-reduce may follow the step's last span, and lies before the next step
        later = min((span["t"] for span in own if span["rank"] == rank and span["t"] >= high), default=2 * high - low)
        for span in spans:
            if span["rank"] != rank or id(span) in taken:
                continue
            begins = low <= span["t"] < (later if span["name"] == ALL_REDUCE else high)
            reaches_in = span["t"] < low < end(span) and span["duration"] < high - low
            if begins or reaches_in:
                shown.append(span)
    return sorted(shown, key=lambda span: span["t"]), sorted({span["step"] for span in chosen})


def end(span: Span) -> float:
    """When a span ended, in s since the launch."""
    return span["t"] + span["duration"]


def reduces_of(spans: list[Span], rank: int) -> list[Span]:
    """The all-reduces of a rank."""
    return [span for span in spans if span["rank"] == rank and span["name"] == ALL_REDUCE]


def backwards(spans: list[Span], rank: int) -> list[tuple[float, float, float]]:
    """(start, gradients done, end) of each backward of a rank; DDP hands over its last bucket when all are done."""
    handed_over = [span["t"] for span in reduces_of(spans, rank)]
    rows = []
    for span in spans:
        if span["rank"] == rank and span["name"] == "backward":
            start, stop = span["t"], end(span)
            rows.append((start, max((t for t in handed_over if start <= t < stop), default=stop), stop))
    return rows


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for low, high in sorted(intervals):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _length(intervals: list[Interval]) -> float:
    return sum(high - low for low, high in intervals)


def _common(left: list[Interval], right: list[Interval]) -> float:
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in left for b in right)


def title(spans: list[Span], ranks: list[int]) -> str:
    """What these spans show, in one sentence."""
    failed = sorted((span for span in spans if span.get("failed")), key=end)
    if failed:
        step = f" in step {failed[0]['step']}" if "step" in failed[0] and failed[0]["name"] != ALL_REDUCE else ""
        others = f", later {count(len(failed) - 1, 'other span')}" if len(failed) > 1 else ""
        return f"{capital(failed[0]['name'])} fails on rank {failed[0]['rank']}{step}{others}"
    late = _late(spans, ranks)
    if late:
        return late
    reduce_s = overlap_s = 0.0
    for rank in ranks:
        reduces = _union((span["t"], end(span)) for span in reduces_of(spans, rank))
        reduce_s += _length(reduces)
        overlap_s += _common(reduces, _union((start, done) for start, done, _ in backwards(spans, rank)))
    if reduce_s and len(ranks) > 1 and any(span["name"] == "backward" for span in spans):
        share = round(100 * overlap_s / reduce_s)
        if share == 0:
            return "No all-reduce overlaps backward: it begins when the gradients are computed"
        return f"{share} % of the all-reduce time overlaps backward while it still computes gradients"
    # all-reduce runs beside the phases, so it is none of them
    phases = [span for span in spans if span["name"] != ALL_REDUCE] or spans
    total: dict[str, float] = {}
    for span in phases:
        total[span["name"]] = total.get(span["name"], 0.0) + span["duration"]
    longest = max(total, key=lambda name: total[name])
    if len(total) == 1:
        return _times(longest, phases)
    where = f"on {which_ranks(sorted({span['rank'] for span in phases}), len(ranks))}"
    share = round(100 * total[longest] / (sum(total.values()) or 1))
    return f"{capital(longest)} takes the most time {where}: {share} % of all phases together"


def _times(name: str, spans: list[Span]) -> str:
    """How long the only phase takes, and on which ranks less or more."""
    by_rank: dict[int, list[float]] = {}
    for span in spans:
        by_rank.setdefault(span["rank"], []).append(1e3 * span["duration"])
    means = sorted((sum(times) / len(times), rank) for rank, times in by_rank.items())
    (least, fast), (most, slow) = means[0], means[-1]
    if most > 1.1 * least:
        return f"{capital(name)} takes {short(least)} ms on rank {fast} and {short(most)} ms on rank {slow}, on average"
    where = f" on rank {fast}" if len(means) == 1 else f" on each of {len(means)} ranks"
    return f"{capital(name)} takes {short(sum(mean for mean, _ in means) / len(means))} ms{where}, on average"


def _late(spans: list[Span], ranks: list[int]) -> str | None:
    """Who waits for whom, if one rank is the last in every all-reduce and the others lose a fifth of the time by it."""
    ready = {rank: [done for _, done, stop in backwards(spans, rank) if done < stop] for rank in ranks}
    if not any(ready.values()):
        # all-reduce outside of backward, by hand
        ready = {rank: [span["t"] for span in reduces_of(spans, rank)] for rank in ranks}
    steps = {len(times) for times in ready.values()}
    if len(ranks) < 2 or len(steps) != 1 or steps == {0}:
        return None
    by_step = list(zip(*ready.values(), strict=True))
    lasts = {max(range(len(ranks)), key=lambda i: times[i]) for times in by_step}
    length = max(end(span) for span in spans) - min(span["t"] for span in spans)
    if len(lasts) != 1:
        return None
    last = lasts.pop()
    waits = {rank: sum(max(times) - times[i] for times in by_step) for i, rank in enumerate(ranks) if i != last}
    waiting = [rank for rank, wait in waits.items() if wait > 0.2 * length]
    if not waiting:
        return None
    mean = 1e3 * sum(waits[rank] for rank in waiting) / len(waiting) / len(by_step)
    verb = "waits" if len(waiting) == 1 else "wait"
    when = "in each step, on average" if len(by_step) > 1 else "in this step"
    return f"{capital(these_ranks(waiting))} {verb} for rank {ranks[last]}: {short(mean, 2)} ms {when}"


def note(spans: list[Span], shown: list[Span], chosen: list[int]) -> str:
    """Which part of the run is shown, and the sizes of the buckets."""
    parts = []
    if chosen:
        counted = [span for span in spans if isinstance(span.get("step"), int)]
        own = [span for span in counted if span["name"] != ALL_REDUCE] or counted
        every = sorted({span["step"] for span in own})
        parts.append(f"{capital(numbered(chosen))} of {every[0]} to {every[-1]}.")
    sizes: dict[Any, int] = {}
    for span in shown:
        if span["name"] == ALL_REDUCE and "bucket" in span:
            sizes[span["bucket"]] = span.get("bytes", 0)
    if sizes:
        mib = ", ".join(_mib(sizes[bucket]) for bucket in sorted(sizes))
        few = f": {mib} MiB" if any(sizes.values()) and len(sizes) <= 8 else ""
        parts.append(f"{count(len(sizes), 'bucket')} in each all-reduce{few}.")
    return " ".join(parts)


def _mib(size: int) -> str:
    return f"{size / 2**20:.2g}" if size < 100 * 2**20 else f"{size / 2**20:.0f}"
