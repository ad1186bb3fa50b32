"""Scaling: the numbers, the title, the picture."""

from __future__ import annotations

import os

import pytest
from matplotlib.figure import Figure

from ddp_lesson.show import plot_scaling
from ddp_lesson.show.scaling import speed_up

STRONG = {1: 0.040, 2: 0.025, 4: 0.032}
WEAK = {1: 0.040, 2: 0.050, 4: 0.100}


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def words(fig: Figure) -> list[str]:
    return [text.get_text() for legend in fig.legends for text in legend.get_texts()]


def test_strong_scaling_compares_times_and_weak_scaling_the_work_done_in_them():
    assert speed_up(STRONG, work=False) == pytest.approx({1: 1, 2: 1.6, 4: 1.25})
    assert speed_up(WEAK, work=True) == pytest.approx({1: 1, 2: 1.6, 4: 1.6})


def test_the_title_states_the_cores_and_what_was_measured(clean):
    fig = plot_scaling(STRONG, WEAK, alone=0.024, cores=2)
    assert title(fig) == (
        "On 2 cores, 2 and 4 ranks do 1.6 and 1.2 times the work of one (strong) and 1.6 and 1.6 times the work of one "
        "(weak)"
    )
    clean(fig)


def test_the_order_of_the_measurements_does_not_count():
    assert title(plot_scaling({4: 0.032, 1: 0.04, 2: 0.025}, cores=2)) == title(plot_scaling(STRONG, cores=2))


def test_more_ranks_than_cores_are_marked_only_where_there_are_some(clean):
    few, many = plot_scaling(STRONG, WEAK, cores=2), plot_scaling(STRONG, WEAK, cores=16)
    assert "more ranks than the 2 cores" in words(few)
    assert not any("more ranks" in word for word in words(many))
    clean(many)


def test_the_reference_of_one_process_is_drawn_where_it_was_measured():
    fig = plot_scaling(STRONG, alone=0.020, cores=2)
    assert "one process, 2 threads" in words(fig)
    assert any(list(line.get_ydata()) == [2.0, 2.0] for line in fig.axes[0].lines)
    assert len(words(plot_scaling(STRONG, cores=4))) == 2


def test_strong_scaling_alone_has_one_panel(clean):
    fig = plot_scaling({1: 1.0, 2: 0.5}, cores=2)
    assert len(fig.axes) == 1
    assert title(fig) == "On 2 cores, 2 ranks do 2.0 times the work of one (strong)"
    clean(fig)


def test_the_cores_are_those_of_the_machine_unless_they_are_given():
    assert f"On {os.cpu_count()} core" in title(plot_scaling(STRONG))


def test_one_rank_alone_says_that_there_is_nothing_to_compare():
    assert "nothing to compare" in title(plot_scaling({1: 1.0}, cores=2))


def test_the_numbers_of_ranks_that_only_lose_can_be_read(clean):
    fig = plot_scaling({1: 1.0, 2: 5.0, 4: 20.0}, {1: 1.0, 2: 9.0, 4: 50.0}, alone=2.0, cores=2)
    clean(fig)
    boxes = [text.get_window_extent() for ax in fig.axes for text in ax.texts]
    assert all(box.y0 >= fig.axes[0].get_window_extent().y0 for box in boxes)


@pytest.mark.parametrize(
    "strong, options, sentence",
    [
        ({2: 1.0}, {}, "The time of 1 rank is missing"),
        ({1: 1.0, 2: 0.0}, {}, "The time of 2 ranks is 0.0"),
        ({1: float("nan")}, {}, "The time of 1 rank is nan"),
        ({1: 1.0}, {"alone": 0}, "alone is 0"),
    ],
)
def test_times_that_cannot_be_compared_are_refused(strong, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        plot_scaling(strong, cores=2, **options)
