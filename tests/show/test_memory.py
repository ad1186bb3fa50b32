from __future__ import annotations

import re

import numpy as np
import pytest

from ddp_lesson.rank import MemoryMeter, record
from ddp_lesson.show import plot_memory

MIB = 2**20


def test_the_axis_says_that_it_is_process_memory_and_the_peak_is_marked(runs, clean) -> None:
    run = runs["digits"]
    fig = plot_memory(run)
    (ax,) = fig.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time since launch (s)", "process memory (MiB)")
    peaks = [max(row["bytes"] for row in run.records if row["name"] == "memory" and row["rank"] == r) for r in (0, 1)]
    rank = peaks.index(max(peaks))
    assert [text.get_text() for text in ax.texts] == [f"peak {peaks[rank] / MIB:.0f} MiB, rank {rank}"]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == [
        f"rank {r}, peak {peak / MIB:.0f} MiB" for r, peak in enumerate(peaks)
    ]
    assert fig.get_suptitle().startswith("Process memory ")
    clean(fig)


def test_the_rank_with_the_higher_peak_is_named(recorded, clean) -> None:
    def work(rank: int) -> None:
        with MemoryMeter():
            block = np.ones(rank * 200 * MIB, dtype=np.uint8)
            record(size=block.size)

    fig = plot_memory(recorded(3, work))
    found = re.fullmatch(
        r"Process memory peaks on rank 2, at (\d+) MiB; on ranks 0 and 1 at (\d+) to (\d+) MiB",
        fig.get_suptitle().replace("\n", " "),
    )
    assert found and int(found[1]) - int(found[2]) > 390
    assert fig.axes[0].get_ylim()[0] == 0
    clean(fig)


def test_small_changes_are_visible_and_the_cut_axis_is_said(recorded) -> None:
    def work(rank: int) -> None:
        with MemoryMeter():
            np.ones(3 * MIB, dtype=np.uint8)

    fig = plot_memory(recorded(1, work))
    assert fig.axes[0].get_ylim()[0] > 0
    assert "The axis does not begin at 0." in fig.texts[1].get_text()
    assert re.match(r"Process memory of rank 0 peaks at \d+ MiB, .* above its start", fig.get_suptitle())


def test_a_run_without_memory_is_told_how_to_record_it(recorded) -> None:
    with pytest.raises(ValueError, match=r"recorded no memory\. Put the steps into `with MemoryMeter"):
        plot_memory(recorded(1, lambda rank: record(loss=1.0)))
