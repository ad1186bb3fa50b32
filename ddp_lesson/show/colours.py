"""Colours that people with any kind of colour vision can tell apart, on a white card."""

from __future__ import annotations

# Okabe and Ito's palette in its order, without black (the mean over ranks is dark); yellow, faint on white, comes late.
RANKS = ("#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#F0E442", "#999999")

# Phases lie inside the rows of ranks, so none of them looks like a rank.
PHASES = {
    "data": "#DDCC77",
    "forward": "#8FD3C0",
    "backward": "#332288",
    "all-reduce": "#882255",
    "optimizer": "#6B7A2E",
}
OTHER_PHASES = ("#C3B1E1", "#A65628", "#4A6A8A", "#F2A7A0", "#3F3F3F")

INK = "#1A1A1A"
QUIET = "#5A5A5A"
FAINT = "#E4E4E4"

_HATCHES = ("", "////", "....", "xxxx")
_DASHES = ("-", "--", ":", "-.")


def rank_colour(rank: int) -> str:
    """The colour of a rank, ``#RRGGBB``; it repeats after eight ranks, which `rank_hatch` and `rank_dash` then part."""
    return RANKS[rank % len(RANKS)]


def rank_hatch(rank: int) -> str:
    """The second sign of a rank on areas: no hatching for ranks 0 to 7, then another one for every eight."""
    return _HATCHES[rank // len(RANKS) % len(_HATCHES)]


def rank_dash(rank: int) -> str:
    """The second sign of a rank on lines: solid for ranks 0 to 7, then another dash for every eight."""
    return _DASHES[rank // len(RANKS) % len(_DASHES)]


def phase_colours(names: list[str]) -> dict[str, str]:
    """A colour for every span name: the five phases first, in their order, then the other names by the alphabet."""
    others = sorted(set(names) - set(PHASES))
    known = {name: colour for name, colour in PHASES.items() if name in names}
    return known | {name: OTHER_PHASES[i % len(OTHER_PHASES)] for i, name in enumerate(others)}
