"""How much memory a rank uses while a block runs."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from ddp_lesson.rank.records import launched_ns, lines

_INTERVAL_S = 0.01
_MOST_SAMPLES = 20_000


class MemoryMeter:
    """Measure memory while a block runs: ``with MemoryMeter(model, optimizer) as meter: …``

    On a CUDA device: the bytes of tensors that torch's allocator has handed out there; entering resets the allocator's
    own peak. Everywhere else: the memory of the whole process, which is NOT tensor bytes: it holds the interpreter,
    torch's libraries and what allocators keep for later, and a peak between two samples is missed. Each sample is also
    recorded into the run, if there is one.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Its first parameter decides which device is measured. Without one: the current CUDA device if CUDA is in use.
    optimizer : torch.optim.Optimizer, optional
        Not used yet.
    budget : None
        Not supported yet.

    Attributes
    ----------
    source : str
        "allocated" (tensor bytes on a CUDA device) or "process" (memory of the process).
    peak_bytes : int
        The most bytes at one time.
    peak_by_category : dict of str to int
        The same, in bytes: {"allocated": …} or {"process memory": …}.
    timeline : list of (float, int)
        Time (s since the launch) and bytes, every 10 ms, in long blocks less often.

    Raises
    ------
    ValueError
        If `budget` is given.
    OSError
        On entering, where the system does not tell how much memory a process has.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, budget: Any = None) -> None:
        if budget is not None:
            raise ValueError("budget is not supported by this MemoryMeter yet: leave it out")
        self._model = model
        self._cuda: Any = None
        self.source = "process"
        self.peak_bytes = 0
        self.timeline: list[tuple[float, int]] = []

    @property
    def peak_by_category(self) -> dict[str, int]:
        """The peak in bytes, under the name of what was measured."""
        return {"allocated" if self.source == "allocated" else "process memory": self.peak_bytes}

    def __enter__(self) -> MemoryMeter:
        self.peak_bytes, self.timeline = 0, []
        # found out here: in a thread of its own the current device is another
        self._device = _cuda_device(self._model)
        self._cuda = sys.modules["torch"].cuda if self._device is not None else None
        self.source = "process" if self._cuda is None else "allocated"
        if self._cuda is not None:
            self._cuda.reset_peak_memory_stats(self._device)
        self._lines, self._start_ns = lines(), launched_ns()
        self._interval = _INTERVAL_S
        self._sample()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="MemoryMeter", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._sample()
        if self._cuda is not None:
            self.peak_bytes = max(self.peak_bytes, self._cuda.max_memory_allocated(self._device))

    def _watch(self) -> None:
        while not self._end.wait(self._interval):
            self._sample()

    def _sample(self) -> None:
        size = process_bytes() if self._cuda is None else self._cuda.memory_allocated(self._device)
        t = (time.monotonic_ns() - self._start_ns) / 1e9
        self.peak_bytes = max(self.peak_bytes, size)
        self.timeline.append((t, size))
        if len(self.timeline) > _MOST_SAMPLES:
            # the meter's own list must not become what it measures
            del self.timeline[1::2]
            self._interval *= 2
        if self._lines is not None:
            self._lines.write(
                f'{{"rank":{self._lines.rank},"t":{t:.6f},"name":"memory","kind":"memory","source":"{self.source}",'
                f'"bytes":{size}}}'
            )


def process_bytes() -> int:
    """Memory of this process in bytes: what is resident now on Linux, the most so far on other systems."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return _most_so_far()


def _most_so_far() -> int:
    try:
        import resource
    except ImportError:
        raise OSError("MemoryMeter cannot measure the memory of a process on this system") from None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _cuda_device(model: Any) -> int | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    parameter = next(iter(model.parameters()), None) if model is not None else None
    if parameter is None:
        return torch.cuda.current_device()
    return parameter.device.index if parameter.is_cuda else None
