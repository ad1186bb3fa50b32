"""Looks at a finished run: pictures, tables, and what a cell shows. Nothing here starts a process."""

from .attempts import plot_attempts
from .devices import plot_devices
from .exchange import plot_exchange
from .memory import plot_memory
from .samples import plot_samples
from .scaling import plot_scaling
from .table import table
from .timeline import plot_timeline
from .values import plot

__all__ = [
    "plot",
    "plot_attempts",
    "plot_devices",
    "plot_exchange",
    "plot_memory",
    "plot_samples",
    "plot_scaling",
    "plot_timeline",
    "table",
]
