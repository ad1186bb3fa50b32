"""Names the cause of a failed run. Needs no torch."""

from .failure import Failure, echoes, failure_of

__all__ = ["Failure", "echoes", "failure_of"]
