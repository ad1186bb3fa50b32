"""N ranks with batch B train as one process with batch N·B: all parameters, after every step, by real launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import processes
import pytest

from ddp_lesson import torchrun
from ddp_lesson.launch.client import pool

SCRIPT = Path(__file__).parent / "scripts" / "equality.py"
STEPS = 20

# A float64 near 1 has an epsilon of 2e-16; the order of a sum is all that may differ.
EQUAL = 1e-13
WRONG = 1e-3

Parameters = dict[str, list[float]]
Launch = Callable[[str, str, int], list[list[Parameters]]]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """A function that trains and returns the parameters by name, for each rank and each step."""

    @cache
    def launch(variant: str, optimizer: str, ranks: int) -> list[list[Parameters]]:
        run = torchrun(SCRIPT, variant, optimizer, nproc_per_node=ranks, timeout=60)
        assert run.ok and run.warm, [rank.stderr for rank in run.ranks]
        found = []
        for rank in range(ranks):
            rows = sorted((row for row in run.records if row["rank"] == rank), key=lambda row: row["step"])
            assert [row["step"] for row in rows] == list(range(STEPS))
            found.append([{name: row[name] for name in row if "." in name} for row in rows])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDP_LESSON_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("CUDA_VISIBLE_DEVICES", "")  # float64 sums on a GPU would be another test
        yield launch
        pool.close()
    processes.assert_none_left()


def difference(some: Parameters, others: Parameters) -> float:
    """The largest difference of any parameter."""
    assert some.keys() == others.keys()
    pairs = [pair for name in some for pair in zip(some[name], others[name], strict=True)]
    return max(abs(a - b) for a, b in pairs)


def differences(train: Launch, variant: str, optimizer: str, ranks: int) -> list[float]:
    """How far the rank that is farthest off is from one process, after each step."""
    (alone,) = train(variant, optimizer, 1)
    together = train(variant, optimizer, ranks)
    return [max(difference(rank[step], alone[step]) for rank in together) for step in range(STEPS)]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("variant", ["plain", "tied", "frozen", "accumulated"])
def test_ranks_train_as_one_process_with_the_whole_batch_does(train, variant, optimizer, ranks):
    assert max(differences(train, variant, optimizer, ranks)) < EQUAL
    together = train(variant, optimizer, ranks)
    assert all(rank == together[0] for rank in together)  # to the last bit


@pytest.mark.parametrize("variant", ["plain", "tied", "frozen", "accumulated"])
def test_the_steps_that_are_compared_move_what_is_trained_and_nothing_else(train, variant):
    (alone,) = train(variant, "sgd", 1)
    assert ("third.weight" in alone[0]) is (variant != "tied")
    for before, after in pairwise(alone):
        for name in before:
            moved = max(abs(a - b) for a, b in zip(before[name], after[name], strict=True))
            if variant == "frozen" and name.startswith("second."):
                assert moved == 0
            else:
                assert moved > 1e-5, name


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("variant", ["unwrapped", "sum", "uneven", "not synced"])
def test_what_is_wrong_is_found_wrong(train, variant, ranks):
    off = differences(train, variant, "sgd", ranks)
    assert off[0] > WRONG / 10 and off[-1] > WRONG
    together = train(variant, "sgd", ranks)
    apart = max(difference(rank[-1], together[0][-1]) for rank in together)
    # without a reduction each rank has a model of its own; a wrong mean is the same on all
    assert apart > WRONG if variant in ("unwrapped", "not synced") else apart == 0
