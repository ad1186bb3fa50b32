"""A rank is killed, torchrun starts all ranks again, they resume: the same parameters, bit for bit. Real launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import processes
import pytest

from ddp_lesson import Run, torchrun
from ddp_lesson.launch.client import pool

SCRIPT = Path(__file__).parent / "scripts" / "restart_train.py"
STEPS, EVERY = 12, 3
# Attempts that share one store can read a dead rank's address: pytorch issue 135712.
ENV = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

Train = Callable[..., Run]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Train]:
    """A function that trains from an empty folder, with one restart allowed."""
    folder = tmp_path_factory.mktemp("home")
    number = iter(range(1000))

    def launch(crash_at: int = -1, variant: str = "whole", restarts: int = 1) -> Run:
        file = folder / f"{next(number)}.pt"
        options = ["--max-restarts", str(restarts)]
        return torchrun(SCRIPT, file, crash_at, variant, nproc_per_node=2, env=ENV, options=options, timeout=60)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDP_LESSON_HOME", str(folder))
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield launch
        pool.close()
    processes.assert_none_left()


@pytest.fixture(scope="module")
def whole(train: Train) -> Run:
    """The training that nothing interrupts."""
    run = train()
    assert run.ok, [rank.stderr for rank in run.ranks]
    return run


def parameters(run: Run) -> list[list[str]]:
    """All parameters at the end, as bytes in hex, for each rank."""
    rows = [row for row in run.records if row["name"] == "end"]
    return [row["parameters"] for row in sorted(rows, key=lambda row: row["rank"])]


def losses(run: Run, attempt: int) -> dict[tuple[int, int], float]:
    """The loss of each rank and step in one attempt."""
    rows = [row for row in run.records if "loss" in row and row.get("attempt", 0) == attempt]
    return {(row["rank"], row["step"]): row["loss"] for row in rows}


@pytest.mark.parametrize("crash_at", [1, 7, STEPS - 1], ids=["before a checkpoint", "between two", "at the last step"])
def test_a_restarted_training_ends_with_the_parameters_of_an_uninterrupted_one(train, whole, crash_at):
    run = train(crash_at)
    assert run.ok, [rank.stderr for rank in run.ranks]
    assert parameters(run) == parameters(whole)
    assert len(parameters(run)) == 2
    begin = crash_at // EVERY * EVERY
    again = losses(run, 1)
    assert sorted(again) == [(rank, step) for rank in (0, 1) for step in range(begin, STEPS)]
    assert all(loss == losses(whole, 0)[key] for key, loss in again.items())


def test_both_ranks_are_started_again(train):
    run = train(7)
    pids = {(row["rank"], row.get("attempt", 0)): row["pid"] for row in run.records if "pid" in row}
    assert len(set(pids.values())) == len(pids) == 4


def test_without_the_optimizers_state_it_is_another_training(train, whole):
    run = train(7, "no-optimizer")
    assert run.ok
    assert parameters(run) != parameters(whole)


def test_without_a_restart_the_run_fails_on_the_rank_that_was_killed(train):
    run = train(7, restarts=0)
    assert run.returncode == 1
    assert run.failure.rank == 1
    assert run.ranks[1].exitcode == -9
    assert parameters(run) == []
