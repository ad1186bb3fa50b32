"""A guess before the answer."""

from __future__ import annotations

from typing import Any


def guess(mine: Any, truth: Any) -> str:
    """Compare a guess with what a run has shown.

    Parameters
    ----------
    mine : object
        The guess; None as long as there is none. The order in a list, tuple or set does not count.
    truth : object
        What the run has shown.

    Returns
    -------
    str
        A sentence. Without a guess it does not tell the truth.
    """
    if mine is None:
        return "Put your guess in place of None and run this cell again."
    if _plain(mine) == _plain(truth):
        return f"Yes: {truth}."
    return f"You guessed {mine}; the run shows {truth}. The picture above says why."


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset | list | tuple | range):
        return sorted(value)
    return value
