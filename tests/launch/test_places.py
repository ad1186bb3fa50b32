"""Run directories: each launch has its own, the oldest go, a running one never does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import run_dirs

from ddp_lesson import torchrun
from ddp_lesson.launch import places

MB = 2**20


def make(home: Path, number: int, size: int = 0, **info: object) -> Path:
    path = home / ".runs" / f"{number}-x"
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"owner": os.getpid(), "wall_s": 1.0} | info))
    with open(path / "stdout.log", "wb") as file:
        file.truncate(size)  # takes no room on the disk
    return path


def running(home: Path, number: int, **info: object) -> Path:
    path = make(home, number, **info)
    (path / "run.json").write_text(json.dumps({"owner": os.getpid()} | info))
    return path


def test_the_oldest_beyond_fifty_go_but_none_that_is_running(home):
    first = running(home, 1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(20)
    abandoned = running(home, 2, owner=gone.pid)
    rest = [make(home, number) for number in range(3, 54)]
    assert places.prune(keep=rest[-1]) == [abandoned, *rest[:2]]
    assert run_dirs(home) == [first, *rest[2:]]
    assert places.prune(keep=rest[-1]) == []


def test_the_oldest_beyond_500_mb_go_but_never_the_newest(home):
    paths = [make(home, number, size=200 * MB) for number in (9, 10, 11)]
    assert places.prune(keep=paths[-1]) == [paths[0]]  # 9 before 10: numbers, not text
    (paths[-1] / "more").touch()
    os.truncate(paths[-1] / "more", 900 * MB)
    assert places.prune(keep=paths[-1]) == [paths[1]]
    assert run_dirs(home) == [paths[-1]]


def test_a_launch_removes_the_oldest(home):
    for number in range(1, 51):
        make(home, number)
    (home / "script.py").write_text("")
    run = torchrun("script.py", nproc_per_node=2, timeout=60)
    assert run.ok and run.path.name == "51-script"
    assert [path.name.partition("-")[0] for path in run_dirs(home)] == [str(n) for n in range(2, 52)]


def test_launches_at_once_get_numbers_of_their_own(home):
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(places.new_run_folder, ["same.py"] * 200))
    assert sorted(number for number, _ in found) == list(range(1, 201))
    assert sorted(os.listdir(home / ".runs")) == sorted(path.name for _, path in found)


def test_a_folder_of_somebody_else_is_left_alone(home):
    other = home / ".runs" / "notes-on-runs"
    other.mkdir(parents=True)
    paths = [make(home, number) for number in range(1, 53)]
    places.prune(keep=paths[-1])
    assert other.is_dir() and len(run_dirs(home)) == 50


def test_the_projects_folder_is_found_from_below(tmp_path, monkeypatch):
    monkeypatch.delenv("DDP_LESSON_HOME", raising=False)
    (tmp_path / "ddp_lesson" / "scripts").mkdir(parents=True)
    (tmp_path / "notebooks" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "notebooks" / "deep")
    assert places.root() == tmp_path
    monkeypatch.setenv("DDP_LESSON_HOME", "elsewhere")
    assert places.root() == tmp_path / "notebooks" / "deep" / "elsewhere"


@pytest.mark.parametrize("name", ["step.py", "a b.py", "größe.py"])
def test_any_script_name_makes_a_run_directory(home, name):
    (home / name).write_text("print('it ran')\n")
    run = torchrun(name, nproc_per_node=2, timeout=60)
    assert run.path == home / ".runs" / f"1-{Path(name).stem}"
    assert [rank.stdout for rank in run.ranks] == ["it ran\n"] * 2
