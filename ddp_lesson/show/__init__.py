"""Looks at a finished run: pictures, tables, and what a cell shows. Nothing here starts a process."""

from __future__ import annotations

from typing import Any

from .memory import plot_memory
from .samples import plot_samples
from .table import table
from .timeline import plot_timeline
from .values import plot

__all__ = ["plot", "plot_memory", "plot_samples", "plot_timeline", "result", "table"]


def __getattr__(name: str) -> Any:
    # `result` stands at the end of every cell; it is read when asked for, so that no plot needs it
    if name == "result":
        from .result import result

        # importing the module of that name has put the module here
        globals()["result"] = result
        return result
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
