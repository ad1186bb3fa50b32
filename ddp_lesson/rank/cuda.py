"""Times of spans on a CUDA device; nothing here is used without one.

A kernel runs after the call that asked for it has returned, so the host's clock measures only the asking. A span
marks its start and its end in the device's stream with events instead. Its line can be written only when the device
has come to the end mark: that is looked up at later spans and, for the last ones, when the process exits. One
reference event for each device puts its times on the host's axis; the first span waits for it. Both stand in the
line: ``t`` and ``duration`` are the device's, ``host_t`` and ``host_duration`` the host's. A process that is killed
loses the lines that were not yet written.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

# the time between two events comes as a 32-bit float of milliseconds: after this many, take a new reference
_REFERENCE_MS = 60_000.0
_EXIT_S = 1.0


class Mark(NamedTuple):
    """A place in the current stream of a device."""

    clock: Clock
    device: int
    event: Any


class Clock:
    """Marks places in the streams of the devices and writes lines when the devices have passed them.

    Parameters
    ----------
    cuda : module
        ``torch.cuda``.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._references: dict[int, tuple[Any, float]] = {}
        self._waiting: deque[tuple[Mark, Mark, Callable[..., None]]] = deque()
        self._lock = threading.RLock()
        self._pid = os.getpid()
        atexit.register(self.finish)

    def mark(self) -> Mark | None:
        """The place where the current stream is now; None where it cannot be marked."""
        try:
            if self._cuda.is_current_stream_capturing():
                return None
            device = self._cuda.current_device()
            with self._lock:
                if device not in self._references:
                    self._references[device] = self._reference(device)
            event = self._cuda.Event(enable_timing=True)
            event.record()
        except RuntimeError:
            return None  # the device has failed: the script's own next call says so, better than a span could
        return Mark(self, device, event)

    def write_when_done(self, begin: Mark, line: Callable[..., None]) -> None:
        """Call `line` with the device's name, start (ns, host's axis) and duration (ns), when it has come to here.

        Where the device cannot tell, `line` is called without arguments.
        """
        end = self.mark()
        if end is None or end.device != begin.device:
            line()
            return
        with self._lock:
            self._waiting.append((begin, end, line))
            self.write_done()

    def write_done(self) -> None:
        """Write the lines of the spans that have ended on their device, in order."""
        with self._lock:
            while self._waiting:
                begin, end, line = self._waiting[0]
                try:
                    if not end.event.query():
                        return
                    times = self._times(begin, end)
                except RuntimeError:
                    times = ()
                self._waiting.popleft()
                line(*times)

    def finish(self) -> None:
        """Write every line that still waits; give a device that is stuck one second and then do without it."""
        if os.getpid() != self._pid:
            return  # a forked child has a copy of the list, and no device
        deadline = time.monotonic() + _EXIT_S
        self.write_done()
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.001)
            self.write_done()
        while self._waiting:
            self._waiting.popleft()[2]()

    def _reference(self, device: int) -> tuple[Any, float]:
        self._cuda.synchronize(device)
        event = self._cuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        return event, time.monotonic_ns()

    def _times(self, begin: Mark, end: Mark) -> tuple[str, float, float]:
        reference, reference_ns = self._references[begin.device]
        since = reference.elapsed_time(begin.event)
        start_ns = reference_ns + since * 1e6
        if since > _REFERENCE_MS:
            self._references[begin.device] = begin.event, start_ns
        return f"cuda:{begin.device}", start_ns, begin.event.elapsed_time(end.event) * 1e6


_clock: Clock | None = None


def mark(torch: Any) -> Mark | None:
    """The place where the current stream of the current device is now; None as long as CUDA is not in use."""
    global _clock
    if not torch.cuda.is_initialized():
        return None
    if _clock is None:
        _clock = Clock(torch.cuda)
    return _clock.mark()
