"""Names the cause of a failed run. Needs no torch."""

from .failure import Failure, failure_of

__all__ = ["Failure", "failure_of"]
