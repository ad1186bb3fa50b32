from __future__ import annotations

import os
import re
import time

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ddp_lesson.rank import record, span
from ddp_lesson.show import plot_timeline
from ddp_lesson.show.colours import PHASES


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def bars(fig: Figure, colour: str) -> list[Rectangle]:
    rgb = tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    found = [patch for patch in fig.axes[0].patches if patch.get_facecolor()[:3] == pytest.approx(rgb)]
    return [patch for patch in found if patch.get_hatch() is None]


def entries(fig: Figure) -> list[str]:
    return [text.get_text() for text in fig.legends[0].get_texts()]


def test_three_steps_from_step_3_on_are_shown_for_every_rank(runs, clean) -> None:
    fig = plot_timeline(runs["digits"])
    (ax,) = fig.axes
    assert ax.get_xlabel() == "time since step 3 began (ms)"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]
    assert {name: len(bars(fig, PHASES[name])) for name in PHASES if name != "all-reduce"} == {
        "data": 6,
        "forward": 6,
        "backward": 6,
        "optimizer": 6,
    }
    assert fig.texts[1].get_text().startswith("Steps 3 to 5 of 0 to 15. 4 buckets in each all-reduce: ")
    clean(fig)


def test_all_reduce_lies_in_lanes_below_the_backward_of_its_rank(runs) -> None:
    fig = plot_timeline(runs["digits"])
    reduces, backwards = bars(fig, PHASES["all-reduce"]), bars(fig, PHASES["backward"])
    assert len(reduces) == 4 * 6
    rows = sorted({bar.get_y() for bar in backwards})
    height = backwards[0].get_height()
    for bar in reduces:
        row = max(y for y in rows if y < bar.get_y())
        assert bar.get_y() >= row + height
    # none covers another
    for i, bar in enumerate(reduces):
        for other in reduces[:i]:
            same_lane = abs(bar.get_y() - other.get_y()) < 1e-6
            apart = bar.get_x() + bar.get_width() <= other.get_x() or other.get_x() + other.get_width() <= bar.get_x()
            assert not same_lane or apart or min(bar.get_width(), other.get_width()) < 0.2


def test_the_title_gives_the_share_of_all_reduce_that_backward_hides(runs) -> None:
    found = re.fullmatch(
        r"(\d+) % of the all-reduce time overlaps backward while it still computes gradients"
        r"|No all-reduce overlaps backward: .*|Rank [01] waits for rank [01]: .*",
        title(plot_timeline(runs["digits"])),
    )
    assert found and (found[1] is None or 0 < int(found[1]) < 100)


def test_one_bucket_overlaps_nothing(runs, clean) -> None:
    fig = plot_timeline(runs["one-bucket"])
    # on a loaded machine one rank may be late in every step, and that is what one sees then
    assert title(fig).startswith("No all-reduce overlaps backward") or " waits for rank " in title(fig)
    assert "backward, waiting for all-reduce" in entries(fig)
    assert "1 bucket in each all-reduce" in fig.texts[1].get_text()
    clean(fig)


def test_the_rank_that_is_waited_for_is_named(runs, clean) -> None:
    fig = plot_timeline(runs["late"])
    assert re.fullmatch(r"Rank 0 waits for rank 1: \d+ ms in each step, on average", title(fig))
    clean(fig)


def test_steps_can_be_chosen(runs, clean) -> None:
    fig = plot_timeline(runs["digits"], steps=range(2))
    assert fig.axes[0].get_xlabel() == "time since step 0 began (ms)"
    assert len(bars(fig, PHASES["forward"])) == 4
    # DDP's first iteration has one bucket
    assert len(bars(fig, PHASES["all-reduce"])) == 2 * (1 + 4)
    clean(fig)
    assert len(bars(plot_timeline(runs["digits"], steps=7), PHASES["forward"])) == 2
    with pytest.raises(ValueError, match=r"No span of step 99 was recorded: there are steps 0 to 15\."):
        plot_timeline(runs["digits"], steps=99)


def test_a_span_that_failed_is_shown_and_named(runs, clean) -> None:
    fig = plot_timeline(runs["failed"])
    assert title(fig) == "Forward fails on rank 1 in step 1"
    assert entries(fig) == ["forward", "failed"]
    clean(fig)


def test_other_names_get_colours_of_their_own_and_spans_without_a_step_are_all_shown(recorded, clean) -> None:
    def work(rank: int) -> None:
        for _ in range(5):
            with span("load"):
                time.sleep(0.003)
            with span("augment"):
                pass

    fig = plot_timeline(recorded(1, work))
    assert title(fig).startswith("Load takes the most time on rank 0: ")
    assert entries(fig) == ["augment", "load"]
    assert len(fig.axes[0].patches) == 10
    assert len({patch.get_facecolor() for patch in fig.axes[0].patches}) == 2
    assert fig.axes[0].get_xlabel() == "time since the first span began (ms)"
    clean(fig)


def test_all_reduce_by_hand_is_shown_to_the_last_and_names_the_rank_that_is_waited_for(recorded, clean) -> None:
    begin = time.monotonic()

    def until(t: float) -> None:
        time.sleep(max(0.0, begin + t - time.monotonic()))

    def work(rank: int) -> None:
        # both ranks on one clock, though they run one after the other: rank 1 is ready 40 ms after rank 0
        nonlocal begin
        os.environ["DDP_LESSON_T0_NS"] = str(time.monotonic_ns())
        begin = time.monotonic()
        for step in range(3):
            with span("work", step=step):
                until(0.1 * step + 0.03 + 0.04 * rank)
            with span("all-reduce"):
                until(0.1 * step + 0.08)

    fig = plot_timeline(recorded(2, work), steps=range(3))
    assert len(bars(fig, PHASES["all-reduce"])) == 6
    assert re.fullmatch(r"Rank 0 waits for rank 1: \d+ ms in each step, on average", title(fig))
    clean(fig)


def test_one_phase_is_given_with_its_times_by_rank(recorded) -> None:
    def work(rank: int) -> None:
        with span("work"):
            time.sleep(0.02 + 0.1 * rank)

    found = re.fullmatch(
        r"Work takes (\S+) ms on rank 0 and (\S+) ms on rank 1, on average", title(plot_timeline(recorded(2, work)))
    )
    assert found and float(found[1]) < float(found[2])


def test_a_step_counter_that_starts_again_shows_one_epoch_only(recorded) -> None:
    def work(rank: int) -> None:
        for _ in range(2):
            for step in range(5):
                with span("forward", step=step):
                    pass

    assert len(plot_timeline(recorded(2, work)).axes[0].patches) == 2 * 2


def test_a_rank_without_spans_keeps_its_empty_row(recorded) -> None:
    def work(rank: int) -> None:
        if rank == 1:
            with span("forward", step=3):
                pass

    fig = plot_timeline(recorded(3, work))
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["rank 0", "rank 1", "rank 2"]
    assert " on rank 1" in title(fig)


def test_a_run_without_spans_is_told_how_to_record_them(recorded) -> None:
    with pytest.raises(
        ValueError, match=r'recorded no span\. Put the phases of the loop into `with span\("forward"\):`'
    ):
        plot_timeline(recorded(2, lambda rank: record(loss=1.0)))
