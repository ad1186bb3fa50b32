"""A machine that cannot do what is asked gives one sentence that says why; a result that is there is not lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import launcher_of, run_dirs, wait_for_ranks

import ddp_lesson
from ddp_lesson import LaunchError, Run, torchrun
from ddp_lesson.launch import places, scripts

STAY = Path(__file__).parent / "scripts" / "stay.py"


@pytest.fixture
def disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """A function that mounts a small file system of its own and makes it the project's folder."""
    mounted = []

    def mount(options: str) -> Path:
        folder = home / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"this user may not mount a file system: {done.stderr.strip()}")
        mounted.append(folder)
        monkeypatch.setenv("DDP_LESSON_HOME", str(folder))
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    with open(folder / "fill", "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def one_sentence(call: Callable, *args: object) -> str:
    with pytest.raises(LaunchError) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text and text.endswith(".")
    return text


def test_a_full_disk_is_named_before_anything_is_launched(disk, home):
    folder = disk("size=256k")
    (home / "x.py").write_text("print('x')\n")
    scripts.scripts_folder().mkdir(parents=True)
    fill(folder)
    assert "the disk is full: free some space" in one_sentence(torchrun, "x.py")
    assert "the disk is full: free some space" in one_sentence(scripts.write, "y.py", "print('y')\n")
    assert not run_dirs(folder) and not list(scripts.scripts_folder().glob("*y.py*"))
    (folder / "fill").unlink()
    assert torchrun("x.py", nproc_per_node=2, timeout=60).ok
    assert scripts.write("y.py", "print('y')\n")[0].read_text() == "print('y')\n"


FILLS = """
import os
if os.environ["RANK"] == "0":
    try:
        with open(os.environ["DDP_LESSON_HOME"] + "/fill", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        {then}
"""


def test_a_disk_that_fills_up_during_a_run_does_not_cost_the_result(disk, home):
    folder = disk("size=1m")
    for name, then in (("quiet", "pass"), ("loud", "print('x' * 9999)")):
        (home / f"{name}.py").write_text(FILLS.format(then=then))
        run = torchrun(f"{name}.py", nproc_per_node=2, timeout=60)
        assert not run.timed_out and run.ok == (name == "quiet")
        assert run.ranks[0].exitcode == (0 if run.ok else 1)
        assert run.notes == [f"Cannot write to {run.path}: the disk is full: free some space."]
        loaded = Run.load(run.path)
        assert (loaded.ok, loaded.wall_s, loaded.failure) == (run.ok, run.wall_s, run.failure)
        (folder / "fill").unlink()
    assert run.failure.rank == 0


def test_a_read_only_file_system_is_named(disk, home):
    folder = disk("size=256k")
    (home / "x.py").write_text("")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    assert "the file system is read-only: work in a folder of your own" in one_sentence(torchrun, "x.py")
    assert "the file system is read-only" in one_sentence(scripts.write, "y.py", "pass\n")


def test_a_file_in_the_way_is_named(home):
    (home / "x.py").write_text("")
    (home / ".runs").write_text("in the way")
    (home / "ddp_lesson").write_text("in the way")
    assert "a file is in the way" in one_sentence(torchrun, "x.py")
    assert "a file is in the way" in one_sentence(scripts.write, "y.py", "pass\n")


def test_a_name_that_is_too_long_is_named(home):
    assert "choose a shorter one" in one_sentence(scripts.write, "y" * 300 + ".py", "pass\n")


def test_a_working_directory_that_has_been_removed_is_named(home, monkeypatch):
    (home / "gone").mkdir()
    monkeypatch.chdir(home / "gone")
    (home / "gone").rmdir()
    assert "working directory has been removed" in one_sentence(torchrun, "x.py")
    monkeypatch.delenv("DDP_LESSON_HOME")
    assert "working directory has been removed" in one_sentence(places.root)


def test_a_run_survives_the_removal_of_its_directory(background, home):
    running = background(STAY, nproc_per_node=2, timeout=60)
    folder, _ = wait_for_ranks(home)
    launcher = launcher_of(folder)
    shutil.rmtree(home / ".runs")
    launcher.terminate()
    run = running.result(30)
    assert not run.ok and run.path == folder
    assert any("was removed while it ran" in note for note in run.notes)
    (home / "x.py").write_text("")
    assert torchrun("x.py", nproc_per_node=2, timeout=60).ok


def test_an_unreadable_script_and_one_that_vanishes(background, home):
    script = home / "x.py"
    script.symlink_to(home / "nowhere.py")
    assert "there is no such script" in one_sentence(torchrun, "x.py")
    script.unlink()
    script.write_text(STAY.read_text())
    running = background("x.py", nproc_per_node=2, timeout=60)
    folder, _ = wait_for_ranks(home)
    script.unlink()
    launcher_of(folder).terminate()
    run = running.result(30)
    assert not run.ok and (run.path / "x.py").exists()


@pytest.fixture
def without_torch(home: Path) -> Path:
    """A Python that has every package of this one but torch."""
    venv.create(home / "venv", symlinks=True)
    folder = next((home / "venv" / "lib").glob("python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("torch", "functorch", "__")) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    (folder / "course.pth").write_text(str(Path(ddp_lesson.__file__).parents[1]))
    return home / "venv" / "bin" / "python"


def test_missing_torch_is_named_and_what_needs_no_torch_works(home, without_torch):
    (home / "x.py").write_text("")

    def python(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([without_torch, *words], capture_output=True, text=True, timeout=60)

    for more in ([], ["--cold"], ["--json"]):
        done = python("-m", "ddp_lesson", "run", *more, "x.py")
        assert done.returncode == 2 and not done.stdout
        assert done.stderr.startswith(f"torch is not installed in the Python that this runs in ({without_torch})")
        assert done.stderr.count("\n") == 1
    found = json.loads(python("-m", "ddp_lesson", "preflight", "--json").stdout)
    assert [row["state"] for row in found if row["what"] == "torch"] == ["problem"]
    shell = python("-m", "IPython", "--colors=nocolor", "-c", "%load_ext ddp_lesson")
    assert shell.returncode == 0, shell.stderr
    assert shell.stdout.startswith("torch is not installed") and "Traceback" not in shell.stdout + shell.stderr
    assert not (home / ".runs").exists()
