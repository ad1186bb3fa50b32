"""A run in a real Jupyter kernel ends when its cell is interrupted, and when the kernel restarts or is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kernels import Kernel
from processes import GONE_S, assert_none_left, assert_port_is_free, keep, pids_of, strays, wait_for, wait_for_ranks

STAY = (Path(__file__).parent / "scripts" / "stay.py").read_text()
TRAIN = (Path(__file__).parent / "scripts" / "train.py").read_text()
CONTROL_S = 5.0


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with Kernel(tmp_path_factory.mktemp("kernel")) as started:
        yield started
    assert_none_left()


def start(kernel: Kernel, words: str, *options: str) -> tuple[str, Path, dict]:
    """A cell that runs, its run directory, what its ranks said."""
    kernel.run("%load_ext ddp_lesson")
    cell = kernel.start(f"%%torchrun --nproc-per-node 2 {' '.join(options)} stay.py {words}\n{STAY}")
    folder, rows = wait_for_ranks(kernel.home)
    return cell, folder, rows


def assert_next_cell_runs(kernel: Kernel) -> None:
    kernel.run("%load_ext ddp_lesson")
    cell = kernel.run(f"%%torchrun train.py\n{TRAIN}")
    assert cell.status == "ok", cell.text
    assert "rank 1 of 2" in cell.text


def test_interrupt_before_anything_is_launched(kernel):
    kernel.run("%load_ext ddp_lesson")
    cell = kernel.start(f"%%torchrun stay.py ddp\n{STAY}")
    wait_for(lambda: psutil.Process(kernel.pid).children(), 20, "the agent")
    time.sleep(0.5)
    kernel.manager.interrupt_kernel()
    ended = kernel.finish(cell, timeout=CONTROL_S)
    assert ended.status == "error" and len(ended.error) == 1, ended.error
    assert_none_left()
    assert kernel.value("run.stopped") == "True"
    assert_next_cell_runs(kernel)


@pytest.mark.parametrize("words, presses", [("ddp", 1), ("stubborn family", 1), ("stubborn family", 2)])
def test_interrupt_gives_control_back_and_leaves_nothing(kernel, words, presses):
    cell, folder, rows = start(kernel, words)
    pressed = time.monotonic()
    for _ in range(presses):
        kernel.manager.interrupt_kernel()
        time.sleep(0.3)
    ended = kernel.finish(cell, timeout=20)
    assert time.monotonic() - pressed < CONTROL_S
    assert_none_left(pids_of(rows), seconds=1)
    assert_port_is_free(rows[0]["port"])
    assert ended.status == "error" and len(ended.error) == 1 and "was stopped after" in ended.error[0]
    assert "rank 1, ended by SIG" in ended.text
    assert kernel.value("run.stopped, run.ok, run.path.name") == repr((True, False, folder.name))
    assert_next_cell_runs(kernel)


def test_restart_leaves_nothing(kernel):
    _, _, rows = start(kernel, "stubborn family")
    agents = [child.pid for child in psutil.Process(kernel.pid).children()]
    kernel.restart(now=True)
    assert_none_left({*pids_of(rows), *agents})
    assert_port_is_free(rows[0]["port"])
    assert_next_cell_runs(kernel)


def test_the_sudden_death_of_the_kernel_leaves_nothing(kernel):
    _, _, rows = start(kernel, "stubborn family", "--cold")
    agents = [child.pid for child in psutil.Process(kernel.pid).children()]
    keep.discard(kernel.pid)
    os.kill(kernel.pid, signal.SIGKILL)
    assert_none_left({*pids_of(rows), *agents}, GONE_S)
    assert not strays()
    assert_port_is_free(rows[0]["port"])
    kernel.restart(now=True)
    assert_next_cell_runs(kernel)
