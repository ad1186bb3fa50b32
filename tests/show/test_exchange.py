from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ddp_lesson.launch.run import Run
from ddp_lesson.rank import record
from ddp_lesson.show import plot_exchange
from ddp_lesson.show.colours import FAINT, RANKS

Exchange = Callable[[list, list], Run]


@pytest.fixture
def exchanged(recorded: Callable[..., Run]) -> Exchange:
    """A function that lets every rank record what it held before and after; None after: it never came back."""

    def make(before: list, after: list) -> Run:
        def work(rank: int) -> None:
            record(name="before", values=before[rank])
            if after[rank] is not None:
                record(name="after", values=after[rank])

        return recorded(len(before), work)

    return make


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def boxes(fig: Figure) -> list[str]:
    """The colours of the boxes, row by row, the column "before" first."""
    patches = [patch for patch in fig.axes[0].patches if isinstance(patch, Rectangle)]
    return [to_hex(patch.get_facecolor()).upper() for patch in patches]


def words(fig: Figure) -> list[str]:
    return [text.get_text() for text in fig.axes[0].texts if text.get_text()]


SITUATIONS = [
    ("all-reduce", [[1.0], [2.0]], [[3.0]] * 2, "Every rank holds the sum"),
    ("all-reduce of 4", [[1], [2], [3], [4]], [[10]] * 4, "Every rank holds the sum"),
    ("mean", [[1.0, 3.0], [2.0, 5.0]], [[1.5, 4.0]] * 2, "Every rank holds the mean"),
    ("tenths", [[0.1], [0.2]], [[0.30000001]] * 2, "Every rank holds the sum"),
    ("broadcast", [[1, 2], [3, 4]], [[1, 2]] * 2, "Every rank holds what rank 0 held"),
    ("zeros", [[0], [7]], [[7]] * 2, "Every rank holds what rank 1 held, which is also the sum"),
    ("all-gather", [[1], [2], [3]], [[1, 2, 3]] * 3, "Every rank holds everything, in rank order"),
    ("gather", [[1], [2]], [[1, 2], [2]], "Only rank 0 holds everything, in rank order"),
    ("reduce", [[1], [2], [4]], [[7], [2], [4]], "Only rank 0 holds the sum"),
    ("reduce-scatter", [[1, 2], [3, 4]], [[4], [6]], "Every rank holds its part of the sum"),
    ("scatter", [[1, 2], [0, 0]], [[1], [2]], "Every rank holds its part of the sum"),
    ("scatter of 3", [[1, 2, 3], [5] * 3, [5] * 3], [[1], [2], [3]], "Every rank holds its part of what rank 0 held"),
    ("all-to-all", [[1, 2], [3, 4]], [[1, 3], [2, 4]], "Every rank has sent a part to every rank"),
    ("ring", [[1], [2], [3]], [[3], [1], [2]], "Every rank holds what the rank before it held"),
    ("nothing", [[1], [2]], [[1], [2]], "Nothing moved: every rank holds what it held"),
    ("one rank", [[5]], [[5]], "Nothing moved: every rank holds what it held"),
    ("garbage", [[1], [2]], [[9], [8]], "The ranks hold different values afterwards"),
    ("garbage alike", [[1], [2]], [[9], [9]], "Every rank holds the same"),
    ("one changed", [[1], [2]], [[1], [9]], "Only rank 1 changed"),
    ("lost", [[1], [2]], [[1], None], "Rank 1 did not come back from the exchange"),
    ("all lost", [[1], [2]], [None, None], "No rank came back from the exchange"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "sentence"), [row[1:] for row in SITUATIONS], ids=[row[0] for row in SITUATIONS]
)
def test_the_title_says_what_the_values_show(
    exchanged: Exchange, clean: Callable, before: list, after: list, sentence: str
) -> None:
    fig = plot_exchange(exchanged(before, after))
    assert title(fig) == sentence
    clean(fig)


def test_a_computed_value_is_grey_and_a_copied_one_bears_the_colour_of_its_rank(exchanged: Exchange) -> None:
    assert boxes(plot_exchange(exchanged([[1], [2]], [[3], [3]]))) == [RANKS[0], FAINT, RANKS[1], FAINT]
    assert boxes(plot_exchange(exchanged([[1], [2]], [[1, 2], [1, 2]]))) == [RANKS[0], *RANKS[:2], RANKS[1], *RANKS[:2]]


def test_what_several_ranks_held_is_grey_unless_the_rank_kept_it(exchanged: Exchange) -> None:
    fig = plot_exchange(exchanged([[5], [5], [1]], [[5], [5], [5]]))
    assert boxes(fig) == [RANKS[0], RANKS[0], RANKS[1], RANKS[1], RANKS[2], FAINT]


def test_a_whole_row_that_one_rank_held_bears_its_colour_even_if_another_held_a_part(exchanged: Exchange) -> None:
    fig = plot_exchange(exchanged([[1, 2], [5, 1]], [[1, 2], [1, 2]]))
    assert boxes(fig) == [RANKS[0]] * 4 + [RANKS[1]] * 2 + [RANKS[0]] * 2


def test_a_sum_is_grey_also_where_a_rank_happened_to_hold_the_same_number(exchanged: Exchange) -> None:
    fig = plot_exchange(exchanged([[1, 0], [0, 1]], [[1, 1], [1, 1]]))
    assert boxes(fig) == [RANKS[0]] * 2 + [FAINT] * 2 + [RANKS[1]] * 2 + [FAINT] * 2


def test_each_box_bears_its_value(exchanged: Exchange) -> None:
    assert words(plot_exchange(exchanged([[1.0], [2.25]], [[1.625], [1.625]]))) == ["1", "1.62", "2.25", "1.62"]


def test_one_number_counts_as_a_list_of_one(exchanged: Exchange) -> None:
    assert title(plot_exchange(exchanged([1, 2], [3, 3]))) == "Every rank holds the sum"


def test_many_values_are_cut_and_that_is_said(exchanged: Exchange, clean: Callable) -> None:
    fig = plot_exchange(exchanged([list(range(40)), list(range(100, 140))], [list(range(40))] * 2))
    assert title(fig) == "Every rank holds what rank 0 held"
    assert "The first 16 values of each rank." in [text.get_text() for text in fig.texts]
    clean(fig)


def test_eight_ranks_gather(exchanged: Exchange, clean: Callable) -> None:
    fig = plot_exchange(exchanged([[10 * r] for r in range(8)], [[10 * r for r in range(8)]] * 8))
    assert title(fig) == "Every rank holds everything, in rank order"
    clean(fig)


def test_a_run_without_such_records_is_refused_with_the_line_to_write(recorded: Callable[..., Run]) -> None:
    with pytest.raises(ValueError, match='record\\(name="before", values='):
        plot_exchange(recorded(2, lambda rank: record(loss=1.0)))


def test_texts_are_refused(recorded: Callable[..., Run]) -> None:
    with pytest.raises(ValueError, match="record a list of numbers"):
        plot_exchange(recorded(1, lambda rank: record(name="before", values=["a"])))


def test_a_run_can_be_asked_itself(exchanged: Exchange) -> None:
    assert title(exchanged([[1], [2]], [[3], [3]]).plot_exchange()) == "Every rank holds the sum"
