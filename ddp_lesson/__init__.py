"""Learn PyTorch DistributedDataParallel by running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .launch import Interrupted, LaunchError, Run, torchrun

__version__ = "0.1.0"
__all__ = ["Interrupted", "LaunchError", "Run", "torchrun"]


def __getattr__(name: str) -> Any:
    # A rank that imports ddp_lesson.rank pays for nothing else.
    if name in __all__:
        from . import launch

        return getattr(launch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext ddp_lesson``."""
    from .magic import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext ddp_lesson``: ends the agents."""
    from .launch.client import pool

    pool.close()
