"""The exceptions that a person can cause by what they typed."""


class LaunchError(ValueError):
    """Bad input or a machine that cannot launch: one sentence that says what is wrong, where, and what to do."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this instead of a traceback.
        return [str(self)]


class NothingToDraw(LaunchError):
    """A picture was asked for that the run's records do not hold."""
