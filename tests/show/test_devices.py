from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.figure import Figure

from ddp_lesson.launch.run import Run
from ddp_lesson.rank import record
from ddp_lesson.show import plot_devices

Rows = list[tuple[str | None, list[int]]]


@pytest.fixture
def seen(recorded: Callable[..., Run]) -> Callable[..., Run]:
    """A function that lets one rank record what is seen under each value."""

    def make(rows: Rows, **more: int) -> Run:
        def work(rank: int) -> None:
            for value, sees in rows:
                record(value=value, sees=sees, **more)

        return recorded(1, work)

    return make


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def table(fig: Figure) -> dict[str, list[tuple[float, str]]]:
    """Label of a row → (column, text) of its filled cells."""
    ax = fig.axes[0]
    found: dict[str, list[tuple[float, str]]] = {label.get_text(): [] for label in ax.get_yticklabels()}
    for text in ax.texts:
        column, row = text.get_position()
        found[list(found)[int(row)]].append((column - 0.5, text.get_text()))
    return found


ALL = [0, 1, 2, 3]
SITUATIONS: list[tuple[Rows, str]] = [
    ([(None, ALL), ("0,1", [0, 1])], "Every GPU keeps its number"),
    ([(None, ALL), ("2,3", [2, 3]), ("1,0", [1, 0])], "Two of 3 values renumber the GPUs"),
    ([(None, ALL), ("2", [2])], "One of 2 values renumbers the GPUs"),
    ([("0,9,1", [0]), ("0,x,1", [0]), ("-1", []), ("", [])], "Two of 4 values are cut short; two hide every GPU"),
    ([("1,0", [1, 0]), ("0 1", [0]), ("0,0", [])],
     "One of 3 values renumbers the GPUs; one is cut short; one hides every GPU"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "sentence"), SITUATIONS, ids=[sentence for _, sentence in SITUATIONS])
def test_the_title_counts_what_the_values_do(seen: Callable, clean: Callable, rows: Rows, sentence: str) -> None:
    fig = plot_devices(seen(rows))
    assert title(fig) == sentence
    clean(fig)


def test_a_cell_bears_the_number_that_the_process_gives_to_the_gpu(seen: Callable) -> None:
    cells = table(plot_devices(seen([(None, ALL), ("3,1", [3, 1]), ("", [])])))
    assert cells["not set"] == [(gpu, f"cuda:{gpu}") for gpu in ALL]
    assert cells['"3,1"'] == [(1, "cuda:1"), (3, "cuda:0")]
    assert cells['""'] == []


def test_there_are_as_many_columns_as_gpus(seen: Callable, clean: Callable) -> None:
    for rows, more, columns in (
        ([("0", [0])], {}, 4),
        ([("5", [5])], {}, 6),
        ([("0", [0])], {"gpus": 8}, 8),
        ([("0,1", list(range(16)))], {"gpus": 16}, 16),
    ):
        fig = plot_devices(seen(rows, **more))
        assert len(fig.axes[0].get_xticks()) == columns
        clean(fig)


def test_what_several_ranks_record_alike_is_one_row(recorded: Callable[..., Run]) -> None:
    fig = plot_devices(recorded(2, lambda rank: record(value="0,1", sees=[0, 1])))
    assert list(table(fig)) == ['"0,1"']


def test_a_run_without_devices_is_refused(recorded: Callable[..., Run]) -> None:
    with pytest.raises(ValueError, match="recorded no devices"):
        plot_devices(recorded(1, lambda rank: record(loss=1.0)))


def test_a_run_can_be_asked_itself(seen: Callable) -> None:
    assert title(seen([("0", [0])]).plot_devices()) == "Every GPU keeps its number"
