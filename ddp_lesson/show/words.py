"""Words for titles: counts, lists of ranks, rounded numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def number(n: int) -> str:
    """`n` as it begins a sentence: a word up to ten, then figures."""
    return _NUMBERS[n] if n < len(_NUMBERS) else str(n)


def count(n: int, noun: str) -> str:
    """``1 sample``, ``2 samples``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(items: Sequence[object]) -> str:
    """``0``, ``0 and 1``, ``0, 1 and 2``."""
    texts = [str(item) for item in items]
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]


def these_ranks(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 0 and 2``; long lists are cut to their number."""
    if len(ranks) > 4:
        return f"{len(ranks)} ranks"
    return ("rank " if len(ranks) == 1 else "ranks ") + listed(ranks)


def all_ranks(n: int) -> str:
    """``both ranks``, ``all 4 ranks``."""
    return "rank 0" if n == 1 else "both ranks" if n == 2 else f"all {n} ranks"


def which_ranks(ranks: Sequence[int], world: int) -> str:
    """`all_ranks` if they are all, else `these_ranks`."""
    return all_ranks(world) if len(ranks) == world else these_ranks(ranks)


def steps(numbers: Sequence[int]) -> str:
    """``step 3``, ``steps 3 to 5``, ``steps 1, 4 and 6``."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"steps {numbers[0]} to {numbers[-1]}"
    return ("step " if len(numbers) == 1 else "steps ") + listed(numbers)


def short(value: float, digits: int = 3) -> str:
    """`value` with so many significant digits, without an exponent where possible; NaN and infinity in words."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size <= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - size)}f}"


def capital(text: str) -> str:
    """`text` with its first letter large, unless it begins with a name such as ``grad_norm``."""
    first = text.partition(" ")[0].rstrip(":,;")
    return text[:1].upper() + text[1:] if first.replace("-", "").isalpha() and first[1:].islower() else text


def small(text: str) -> str:
    """`text` with its first letter small."""
    return text[:1].lower() + text[1:]


def pair(first: float, second: float) -> tuple[str, str]:
    """Two values in as many digits as it takes to tell them apart, at least three and at most six."""
    for digits in (3, 4, 5, 6):
        texts = short(first, digits), short(second, digits)
        if texts[0] != texts[1]:
            break
    return texts
