"""The attempts of a restarted run."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from ddp_lesson.rank import record
from ddp_lesson.show import plot_attempts


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def losses(steps: range, shift: float = 0.0):
    def work(rank: int) -> None:
        for step in steps:
            record(step=step, loss=10.0 - step + rank + shift)

    return work


@pytest.fixture
def restarted(recorded, monkeypatch):
    """A run that broke after step 6 and went on from step 4."""

    def make(shift: float = 0.0):
        def work(rank: int) -> None:
            from ddp_lesson.rank import records

            losses(range(7))(rank)
            monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
            records.forget()
            losses(range(4, 9), shift)(rank)

        return recorded(2, work)

    return make


def test_the_title_tells_where_attempts_end_and_go_on(restarted, recorded, clean):
    fig = plot_attempts(restarted(), reference=recorded(2, losses(range(9))))
    assert title(fig) == (
        "Attempt 0 ends after step 6, attempt 1 goes on from step 4 and ends with exactly the loss of the "
        "uninterrupted run"
    )
    clean(fig)


def test_another_loss_at_the_end_is_said(restarted, recorded):
    fig = plot_attempts(restarted(shift=1e-6), reference=recorded(2, losses(range(9))))
    assert "ends with another loss than the uninterrupted run" in title(fig)


def test_each_attempt_is_a_line_and_what_was_done_twice_is_noted(restarted):
    fig = plot_attempts(restarted())
    lines = [list(line.get_xdata()) for line in fig.axes[0].lines if len(line.get_xdata()) > 2]
    assert lines == [list(range(7)), list(range(4, 9))]
    assert any("3 steps since the last checkpoint (4, 5 and 6)" in text.get_text() for text in fig.texts)


def test_a_run_without_a_restart_has_one_line(recorded, clean):
    fig = plot_attempts(recorded(2, losses(range(3))))
    assert title(fig) == "Attempt 0 ends after step 2"
    clean(fig)


def test_what_was_not_recorded_is_said(recorded):
    with pytest.raises(ValueError, match='recorded no "accuracy" with a step'):
        plot_attempts(recorded(1, losses(range(2))), "accuracy")
