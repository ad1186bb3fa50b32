from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from ddp_lesson.rank import record
from ddp_lesson.show import plot
from ddp_lesson.show.colours import INK, RANKS


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def series(*rows: list[float], **extra: object):
    """Work that records these losses, one list for each rank."""

    def work(rank: int) -> None:
        for step, loss in enumerate(rows[rank]):
            record(loss=loss, step=step, **extra)

    return work


def test_each_rank_has_a_line_and_the_mean_is_dark(runs, clean) -> None:
    run = runs["digits"]
    fig = plot(run, "loss")
    (ax,) = fig.axes
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["rank 0", "rank 1", "mean over ranks"]
    assert [line.get_color() for line in lines.values()] == [RANKS[0], RANKS[1], INK]
    recorded = [[row["loss"] for row in run.records if "loss" in row and row["rank"] == rank] for rank in (0, 1)]
    assert np.allclose(lines["mean over ranks"].get_ydata(), np.mean(recorded, axis=0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    clean(fig)


def test_loss_is_what_is_drawn_when_nothing_is_named(recorded) -> None:
    assert plot(recorded(1, series([2.0, 1.0]))).axes[0].get_ylabel() == "loss"


SITUATIONS = [
    ([[4.0, 3.0, 1.0], [4.0, 2.0, 2.0]], "Loss falls from 4.00 to 1.50 on average; both ranks are up to 1.0 apart"),
    ([[1.0, 2.0], [1.0, 2.0]], "Loss rises from 1.00 to 2.00, the same on both ranks"),
    ([[1.0, 3.0, 0.5, 1.2]], "Loss stays between 0.500 and 3.00"),
    ([[2.0, 2.0]], "Loss is 2.00"),
    ([[2.0, 1.0], []], "Loss falls from 2.00 to 1.00 on rank 0"),
    ([[2.0, 1.0], [1.0, float("nan")]], "Loss is NaN on rank 1 from step 1 on"),
    ([[1.0, float("inf"), 1.0]] * 4, "Loss is infinite on all 4 ranks at step 1"),
]


@pytest.mark.parametrize(("rows", "sentence"), SITUATIONS, ids=[sentence for _, sentence in SITUATIONS])
def test_the_title_says_what_the_values_do(recorded, clean, rows: list, sentence: str) -> None:
    fig = plot(recorded(len(rows), series(*rows)))
    assert title(fig) == sentence
    clean(fig)


def test_the_mean_is_taken_only_where_every_rank_has_a_value(recorded) -> None:
    fig = plot(recorded(2, series([4.0, 2.0, 9.0], [2.0, 2.0])))
    mean = fig.axes[0].lines[-1]
    assert list(mean.get_xdata()) == [0, 1] and list(mean.get_ydata()) == [3.0, 2.0]


def test_several_values_have_axes_of_their_own_and_units_from_their_names(recorded, clean) -> None:
    def work(rank: int) -> None:
        for step in range(3):
            record(loss=1.0 / (step + 1), step_ms=10 + rank, step=step)

    fig = plot(recorded(2, work), "loss", "step_ms")
    assert [ax.get_ylabel() for ax in fig.axes] == ["loss", "step_ms (ms)"]
    assert title(fig) == (
        "Loss falls from 1.00 to 0.333, the same on both ranks; "
        "step_ms is 10.5 on average; both ranks are up to 1.0 apart"
    )
    clean(fig)


def test_without_steps_or_with_repeated_ones_records_are_numbered(recorded) -> None:
    def work(rank: int) -> None:
        for _ in range(2):
            for step in range(3):
                record(loss=1.0, step=step)

    ax = plot(recorded(1, work)).axes[0]
    assert ax.get_xlabel() == "number of the record on its rank"
    assert list(ax.lines[0].get_xdata()) == [0, 1, 2, 3, 4, 5]


def test_sixteen_ranks_are_told_apart_by_dashes(recorded, clean) -> None:
    fig = plot(recorded(10, lambda rank: [record(loss=rank + step, step=step) for step in range(2)]))
    lines = {line.get_label(): line for line in fig.axes[0].lines}
    assert lines["rank 0"].get_color() == lines["rank 8"].get_color()
    assert lines["rank 0"].get_linestyle() != lines["rank 8"].get_linestyle()
    clean(fig)


def test_a_value_that_was_not_recorded_is_answered_with_those_that_were(recorded) -> None:
    run = recorded(1, lambda rank: record(loss=1.0, lr=0.1, note="text", step=0))
    with pytest.raises(ValueError, match=r'This run recorded no value "accuracy": it recorded loss and lr\.'):
        plot(run, "accuracy")
    with pytest.raises(ValueError, match=r'"note" was not recorded as a number\. Numbers are loss and lr\.'):
        plot(run, "note")
    with pytest.raises(ValueError, match="it recorded no values"):
        plot(recorded(1, lambda rank: record(step=0)))
