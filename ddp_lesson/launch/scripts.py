"""Writes a cell's script, and never overwrites what a person edited."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from .errors import LaunchError
from .places import cannot_write, root, scripts_folder

LEDGER = ".written.json"


def checked(name: str | None) -> Path:
    """The path of a script that a cell names.

    Raises
    ------
    LaunchError
        Without a name, for one that leaves the scripts folder, or one that does not end in ``.py``.
    """
    if not name:
        raise LaunchError("The first line names no script: write, for example, %%torchrun --nproc-per-node 2 hello.py")
    if not name.endswith(".py") or name.endswith("/.py") or name == ".py":
        raise LaunchError(f"{name}: a script's name must end in .py")
    folder = scripts_folder()
    path = Path(os.path.normpath(folder / name))
    # A shell would read ~ as the home folder.
    if "\0" in name or name.startswith("~") or not path.resolve().is_relative_to(folder.resolve()):
        raise LaunchError(f"{name}: scripts are written into ddp_lesson/scripts/; give a plain name such as hello.py")
    return path


def check_source(source: str, name: str) -> None:
    """See that a cell holds a script that Python can read.

    Raises
    ------
    LaunchError
        For an empty cell, or with line and column of a syntax error.
    """
    if not source.strip():
        raise LaunchError(f"The cell holds no script: write the lines of {name} below the %%torchrun line.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the ranks say it themselves
            compile(source, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.lineno is None:  # a null byte in the cell
            raise LaunchError(f"{name} cannot be read by Python: {error}. Nothing was launched.") from None
        line = (error.text or "").rstrip("\n")
        where = f"{name}, line {error.lineno}, column {error.offset}: {error.msg}."
        hint = ""
        if line.lstrip().startswith(("%", "!")):
            hint = " This is a script, not a notebook cell: % and ! lines do not work in it."
        mark = f"\n    {line}\n    {' ' * max((error.offset or 1) - 1, 0)}^" if line else ""
        raise LaunchError(f"{where}{hint} Nothing was launched.{mark}") from None
    except ValueError as error:  # a null byte in older Pythons, or half a character
        raise LaunchError(f"{name} cannot be read by Python: {error}. Nothing was launched.") from None


def write(name: str | None, source: str) -> tuple[Path, Path | None]:
    """Write a cell's script exactly as it stands.

    A version that the kit did not write itself (edited by hand, or by somebody else) is kept beside the new one.

    Returns
    -------
    path, kept : Path, Path or None
        Where the script lies, and where the edited version was kept, if there was one.

    Raises
    ------
    LaunchError
        When it cannot be written.
    """
    path = checked(name)
    data = encoded(source)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _ledger() as written:
            key = path.relative_to(scripts_folder()).as_posix()
            known = written.setdefault(key, [])
            try:
                found = path.read_bytes()
            except FileNotFoundError:
                found = None
            kept = None
            if found != data:
                if found is not None and _digest(found) not in known:
                    kept = _keep(path, found)
                _replace(path, data)
            if _digest(data) in known:
                known.remove(_digest(data))
            written[key] = [*known, _digest(data)][-5:]
    except OSError as error:
        raise LaunchError(cannot_write(path, error)) from None
    return path, kept


def encoded(source: str) -> bytes:
    """A cell's text as it stands in the script's file."""
    return source.encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _keep(path: Path, found: bytes) -> Path:
    number = 1
    while True:
        kept = path.with_name(f"{path.stem}.edited-{number}.py")
        try:
            with open(kept, "xb") as file:
                file.write(found)
            return kept
        except FileExistsError:
            if kept.read_bytes() == found:
                return kept
            number += 1


def _replace(path: Path, data: bytes) -> None:
    # A reader sees the old script or the new one, never half of one.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _ledger() -> Iterator[dict[str, list[str]]]:
    """What the kit wrote, as digests per script; held by one process at a time."""
    folder = scripts_folder()
    file = folder / LEDGER
    lock = root() / ".runs" / ".scripts.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "w") as held:
        try:
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
        except ImportError:  # Windows: two notebooks at once are rare there
            pass
        try:
            written = json.loads(file.read_text(encoding="utf-8"))
            written = {name: known for name, known in written.items() if isinstance(known, list)}
        except (OSError, ValueError, AttributeError):
            written = {}
        before = json.dumps(written, indent=1, sort_keys=True)
        yield written
        after = json.dumps(written, indent=1, sort_keys=True)
        if after != before:
            _replace(file, (after + "\n").encode())
