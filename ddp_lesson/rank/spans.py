"""How long something took."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

from ddp_lesson.rank import cuda
from ddp_lesson.rank.records import Lines, encode, lines, quoted, refuse_keys

_RESERVED = frozenset(
    {"rank", "t", "kind", "attempt", "name", "duration", "failed", "device", "host_t", "host_duration"}
)


class span:
    """Record when a block began and how long it took: ``with span("forward"): …``

    The line is written when the block ends, also when it ends with an exception (then with ``"failed": true``). Where
    CUDA is in use, the times are those of the device; see `ddp_lesson.rank.cuda`. While a torch profiler is active
    the block also appears there under the same name.

    Parameters
    ----------
    name : str
        What the block does: "data", "forward", "backward", "optimizer", …
    **values
        Further values for the line, as for `record`, as they are when the span is made.

    Raises
    ------
    TypeError
        If `name` is not a string, or a value cannot be recorded.
    ValueError
        If a key is one of those that a span sets itself.
    """

    # a class with slots: contextlib would cost more than the measurement
    __slots__ = ("_label", "_lines", "_mark", "_more", "_name", "_start")

    def __init__(self, name: str, **values: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f'a span\'s name is a string, not {name!r}: write span("forward")')
        self._name = name
        self._lines = lines()
        self._more = _more(values) if values and self._lines is not None else ""
        self._label = self._mark = None

    def __enter__(self) -> span:
        torch = sys.modules.get("torch")
        if torch is not None:
            # a build without CUDA or ROCm has nothing to mark
            if self._lines is not None and (torch.version.cuda or torch.version.hip):
                self._mark = cuda.mark(torch)
            # asked first, because a label costs 10 us even when nobody profiles
            if torch.autograd._profiler_enabled():
                self._label = torch.profiler.record_function(self._name)
                self._label.__enter__()
        self._start = time.monotonic_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        end = time.monotonic_ns()
        if self._label is not None:
            self._label.__exit__(kind, error, traceback)
            self._label = None
        if self._lines is not None:
            failed = ',"failed":true' if kind is not None else ""
            write(self._lines, self._name, self._start, end, failed + self._more, self._mark)


def _more(values: dict[str, Any]) -> str:
    """The values of a span as JSON."""
    refuse_keys(values, _RESERVED, "a span")
    return encode(values)


def write(target: Lines, name: str, start: int, end: int, rest: str = "", mark: cuda.Mark | None = None) -> None:
    """Write a span's line: at once, or, where its start was marked on a CUDA device, when the device is done with it.

    Parameters
    ----------
    start, end : int
        ``time.monotonic_ns()`` on the host.
    rest : str
        Further keys as JSON, each with a comma before it.
    mark : cuda.Mark, optional
        Where the span began on the device; it ends where the device's current stream is now.
    """
    if mark is None:
        target.write(
            f'{target.head}{(start - target.start_ns) / 1e9:.6f},"name":{quoted(name)},"kind":"span",'
            f'"duration":{(end - start) / 1e9:.6f}{rest}}}'
        )
    else:
        mark.clock.write_when_done(mark, partial(_write_device, target, name, start, end, rest))


def _write_device(
    target: Lines, name: str, start: int, end: int, rest: str, device: str = "", began: float = 0, took: float = 0
) -> None:
    if not device:
        write(target, name, start, end, rest)
        return
    host = f',"device":"{device}","host_t":{target.seconds(start):.6f},"host_duration":{(end - start) / 1e9:.6f}'
    write(target, name, round(began), round(began + took), host + rest)
