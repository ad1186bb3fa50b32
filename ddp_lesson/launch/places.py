"""Where scripts and run directories lie."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from .errors import LaunchError

MOST_RUNS = 50
MOST_BYTES = 500 * 2**20


def root() -> Path:
    """The project's folder: the nearest one above the working directory that holds ``ddp_lesson/scripts``.

    Without one it is the working directory itself. The variable DDP_LESSON_HOME names another.
    """
    named = os.environ.get("DDP_LESSON_HOME")
    if named:
        return Path(named).resolve()
    here = working_folder()
    for folder in (here, *here.parents):
        if (folder / "ddp_lesson" / "scripts").is_dir():
            return folder
    return here


def working_folder() -> Path:
    """The working directory.

    Raises
    ------
    LaunchError
        When it has been removed.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise LaunchError("The working directory has been removed: change to a folder that is there.") from None


def scripts_folder() -> Path:
    """Where distributed cells write their scripts."""
    return root() / "ddp_lesson" / "scripts"


def runs_folder() -> Path:
    """Where run directories lie."""
    return root() / ".runs"


def new_run_folder(script: str) -> tuple[int, Path]:
    """Make an empty run directory ``.runs/<number>-<script>``; two launches at once get two numbers.

    Raises
    ------
    LaunchError
        When it cannot be made.
    """
    folder = runs_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = max((n for n, _ in _numbered(folder)), default=0) + 1
        while True:
            # One folder per number decides who has it: mkdir is atomic.
            path = folder / f"{number}-{Path(script).stem}"
            try:
                (folder / f".{number}").mkdir()
            except FileExistsError:
                number += 1
                continue
            try:
                # Whoever had the number a moment ago may be done with it already.
                if not any(folder.glob(f"{number}-*")):
                    _make_run_folder(path)
                    return number, path
            finally:
                (folder / f".{number}").rmdir()
            number += 1
    except OSError as error:
        raise LaunchError(cannot_write(folder, error)) from None


def _make_run_folder(path: Path) -> None:
    try:
        for made in (path, path / "records", path / "finished"):
            made.mkdir()
        (path / "exits.jsonl").write_bytes(b"\n")  # has a block of its own if the disk fills up
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise


def prune(keep: Path) -> list[Path]:
    """Remove the oldest run directories beyond 50 runs or 500 MB; never `keep` or one that is still running."""
    found = [path for _, path in sorted(_numbered(runs_folder()))]
    sizes = {path: _size(path) for path in found}
    removed = []
    while len(found) > MOST_RUNS or sum(sizes[path] for path in found) > MOST_BYTES:
        oldest = next((path for path in found if path != keep and not _running(path)), None)
        if oldest is None:
            break
        shutil.rmtree(oldest, ignore_errors=True)
        found.remove(oldest)
        removed.append(oldest)
    return removed


def cannot_write(path: Path, error: OSError) -> str:
    """One sentence on why `path` cannot be written."""
    reason = {
        errno.ENOSPC: "the disk is full: free some space",
        errno.EDQUOT: "your disk quota is used up: free some space",
        errno.EACCES: "this user may not write there: work in a folder of your own, or set DDP_LESSON_HOME",
        errno.EPERM: "this user may not write there: work in a folder of your own, or set DDP_LESSON_HOME",
        errno.EROFS: "the file system is read-only: work in a folder of your own, or set DDP_LESSON_HOME",
        errno.ENOTDIR: "a file is in the way of a folder of that name: move it",
        errno.EEXIST: "a file is in the way of a folder of that name: move it",
        errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    }.get(error.errno or 0, f"{error.strerror}: work in a folder where you can write, or set DDP_LESSON_HOME")
    return f"Cannot write to {path}: {reason}."


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    rows = []
    for path in folder.glob("[0-9]*-*"):
        number = path.name.partition("-")[0]
        if number.isdecimal() and path.is_dir():
            rows.append((int(number), path))
    return rows


def _running(path: Path) -> bool:
    import json

    import psutil

    try:
        info = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Made a moment ago, or torn: a day later nobody waits for it any more.
        import time

        try:
            return time.time() - path.stat().st_mtime < 86400
        except OSError:
            return False
    return "wall_s" not in info and psutil.pid_exists(info.get("owner", -1))


def _size(path: Path) -> int:
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return total
