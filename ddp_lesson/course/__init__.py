"""What the lessons need beside the runs: the difference between two scripts, and guesses before the answer."""

from .diff import ScriptDiff, diff
from .guess import guess

__all__ = ["ScriptDiff", "diff", "guess"]
