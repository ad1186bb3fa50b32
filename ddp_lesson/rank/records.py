"""One line of JSON per record, appended to the file of its rank."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
import types
from functools import lru_cache
from typing import Any

_RESERVED = frozenset({"rank", "t", "kind", "attempt"})
_IMPORTED_NS = time.monotonic_ns()


class Lines:
    """The file ``records/<rank>.jsonl`` of a run directory.

    A line is one write to a file opened for appending: threads, forked children and several processes of one rank can
    share the file, and a kill tears at most the line that was being written.

    Parameters
    ----------
    run_dir : str
        The run directory; it must exist.
    rank : int
        The rank that the lines are about.
    """

    __slots__ = ("_fd", "_torn", "_warned", "head", "path", "rank", "start_ns")

    def __init__(self, run_dir: str, rank: int) -> None:
        self.rank = rank
        self.start_ns = launched_ns()
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        # After a restart the same rank records the same steps again.
        again = f'"attempt":{attempt},' if attempt.isdecimal() and attempt != "0" else ""
        self.head = f'{{"rank":{rank},{again}"t":'
        self.path = os.path.join(run_dir, "records", f"{rank}.jsonl")
        self._torn = self._warned = False
        self._fd = None
        try:
            if os.path.isdir(run_dir):
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._torn = _ends_torn(self._fd)
        except OSError as error:
            self._warn(error)

    def seconds(self, ns: float) -> float:
        """`ns` of ``time.monotonic_ns()`` as seconds since the launch."""
        return (ns - self.start_ns) / 1e9

    def write(self, line: str) -> None:
        """Append `line` and a newline. An error is said once on stderr and never raised: training goes on."""
        if self._fd is None:
            return
        # a line of its own also after one that was left unfinished
        data = f"\n{line}\n".encode() if self._torn else f"{line}\n".encode()
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            self._warn(error)
            return
        self._torn = written < len(data)
        if self._torn:
            self._warn("only a part of a line could be written")

    def _warn(self, error: OSError | str) -> None:
        if self._warned:
            return
        self._warned = True
        reason = error if isinstance(error, str) else error.strerror
        # stderr may be missing, closed or full as well
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stderr.write(
                f"ddp_lesson: rank {self.rank} cannot record to {self.path}: {reason}. It goes on without.\n"
            )


_UNKNOWN = object()
_lines: Any = _UNKNOWN


def lines() -> Lines | None:
    """The file that this process records to; None without a run directory.

    The environment is read once in each process, also in a forked one: every look-up would cost a quarter of a line.
    """
    global _lines
    if _lines is _UNKNOWN:
        run_dir, rank = os.environ.get("DDP_LESSON_RUN_DIR"), os.environ.get("RANK", "0")
        # no lock: two threads may both open the file, which does no harm
        _lines = Lines(run_dir, int(rank) if rank.isdecimal() else 0) if run_dir else None
    return _lines


def forget() -> None:
    """Read the environment again before the next line."""
    global _lines
    _lines = _UNKNOWN


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)


def launched_ns() -> int:
    """The zero of all times: ``time.monotonic_ns()`` at the launch; without a launcher, when this was imported."""
    given = os.environ.get("DDP_LESSON_T0_NS", "")
    return int(given) if given.isdecimal() else _IMPORTED_NS


def record(**values: Any) -> None:
    """Write the values down, with the rank and the time.

    Parameters
    ----------
    **values
        None, bool, int, float, str, numpy scalars, tensors and arrays of one element, and lists, tuples and dicts of
        those. A tensor on a GPU is waited for. `name` replaces the record's name, "record". Dictionary keys come back
        as strings and tuples as lists.

    Raises
    ------
    TypeError
        If a value is something else.
    ValueError
        If a key is ``rank``, ``t``, ``kind`` or ``attempt``, which are set here.
    """
    target = lines()
    if target is None:
        return
    now = time.monotonic_ns()
    refuse_keys(values, _RESERVED, "record")
    name = values.pop("name", "record")
    if not isinstance(name, str):
        raise TypeError(f"name is {_what(name)}: pass a string")
    t = (now - target.start_ns) / 1e9
    target.write(f'{target.head}{t:.6f},"name":{quoted(name)},"kind":"record"{encode(values)}}}')


def refuse_keys(values: dict[str, Any], reserved: frozenset[str], where: str) -> None:
    """Raise ValueError if `values` has a key that `where` sets itself."""
    if not reserved.isdisjoint(values):
        key = next(key for key in values if key in reserved)
        raise ValueError(f"{key} is a key that {where} sets itself: choose another name for yours")


@lru_cache(maxsize=1000)
def quoted(text: str) -> str:
    """`text` as JSON, remembered: for names, of which there are few."""
    return json.dumps(text)


def encode(values: dict[str, Any]) -> str:
    """`values` as JSON, a comma before each; TypeError with one sentence that names the key of one that cannot be."""
    text = ""
    for key, value in values.items():
        try:
            if _is_tensor(value):
                value = _one_number(value)
            # most values are numbers, and the encoder is slow to start
            is_number = type(value) is int or (type(value) is float and math.isfinite(value))
            text += f",{quoted(key)}:{value!r}" if is_number else f",{quoted(key)}:{_encoder.encode(value)}"
        except (TypeError, ValueError, RecursionError):
            problem = _problem(key, value)
            if problem is None:
                raise
            raise TypeError(problem) from None
    return text


def _one_number(value: Any) -> Any:
    """A plain number for what JSON does not know: a tensor, an array or a numpy scalar of one element."""
    if _is_tensor(value):
        if value.numel() == 1 and not value.is_meta:
            return value.item()
    elif _is_array(value) and value.size == 1:
        # .item() of a long double is a long double again
        return float(value.item()) if value.dtype.kind == "f" else value.item()
    raise TypeError


_encoder = json.JSONEncoder(default=_one_number, separators=(",", ":"))


def _problem(name: str, value: Any, depth: int = 0) -> str | None:
    """What is wrong with `value`, in one sentence; None if it can be recorded."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return None
    if depth > 20:
        return f"{name[: name.find('[')]} is nested too deeply or contains itself: pass a flat list"
    if isinstance(value, dict):
        for key, item in value.items():
            if not (key is None or isinstance(key, (bool, int, float, str))):
                return f"{name} has {_what(key)} as a key: pass strings as keys"
            if problem := _problem(f"{name}[{key!r}]", item, depth + 1):
                return problem
        return None
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            if problem := _problem(f"{name}[{i}]", item, depth + 1):
                return problem
        return None
    if _is_tensor(value) or _is_array(value):
        kind, size = ("tensor", value.numel()) if _is_tensor(value) else ("array", value.size)
        if size != 1:
            return f"{name} is {_what(value, kind)} of shape {tuple(value.shape)}: pass {name}.tolist() or one number"
        if _is_tensor(value) and value.is_meta:
            return f"{name} is a tensor on the meta device, which holds no numbers: pass a number"
        return _problem(name, _one_number(value), depth + 1)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return f"{name} is a function: call it and pass the number it returns"
    return f"{name} is {_what(value)}: pass a number, a string, None, or a list or dict of them"


def _what(value: Any, kind: str | None = None) -> str:
    kind = kind or type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _ends_torn(fd: int) -> bool:
    """Whether the file ends in an unfinished line, which a killed process of this rank has left."""
    if os.fstat(fd).st_size == 0:
        return False
    os.lseek(fd, -1, os.SEEK_END)
    return os.read(fd, 1) != b"\n"
