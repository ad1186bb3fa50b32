"""From a command to a `Run`. Knows neither IPython nor matplotlib."""

from .api import Interrupted, torchrun
from .errors import LaunchError
from .run import Rank, Run

__all__ = ["Interrupted", "LaunchError", "Rank", "Run", "torchrun"]
