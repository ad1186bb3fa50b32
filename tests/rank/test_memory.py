import threading

import pytest
import torch

from ddp_lesson.rank import MemoryMeter, memory

from .conftest import read


def test_on_the_cpu_it_sees_the_process_grow_and_says_so(run_dir):
    model = torch.nn.Linear(2, 2)
    with MemoryMeter(model, torch.optim.SGD(model.parameters(), lr=0.1)) as meter:
        block = bytearray(32 << 20)
        block[::4096] = bytes(len(block[::4096]))
    times, sizes = zip(*meter.timeline, strict=True)
    assert meter.source == "process"
    assert meter.peak_by_category == {"process memory": meter.peak_bytes}
    assert meter.peak_bytes == max(sizes) and meter.peak_bytes - sizes[0] > 24 << 20
    assert list(times) == sorted(times) and len(times) >= 2
    rows = read(run_dir)
    assert [row["bytes"] for row in rows] == list(sizes)
    assert {(row["rank"], row["name"], row["kind"], row["source"]) for row in rows} == {
        (3, "memory", "memory", "process")
    }


def test_the_sampling_thread_ends_with_the_block_also_under_an_exception():
    before = threading.active_count()
    meter = MemoryMeter()
    with pytest.raises(KeyError), meter:
        assert threading.active_count() == before + 1
        raise KeyError
    assert threading.active_count() == before
    assert meter.peak_bytes > 0


def test_each_block_is_measured_afresh():
    meter = MemoryMeter()
    with meter:
        pass
    first = meter.timeline
    with meter:
        pass
    assert meter.timeline[0][0] > first[-1][0]


def test_a_long_block_does_not_grow_the_timeline_without_end(monkeypatch):
    monkeypatch.setattr(memory, "_MOST_SAMPLES", 10)
    with MemoryMeter() as meter:
        for _ in range(50):
            meter._sample()
    assert len(meter.timeline) <= 12
    times = [t for t, _ in meter.timeline]
    assert times == sorted(times)


def test_where_there_is_no_proc_the_system_says_the_most_so_far():
    assert memory._most_so_far() >= memory.process_bytes() // 2 > 1 << 20


def test_a_budget_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^budget is not supported by this MemoryMeter yet: leave it out$"):
        MemoryMeter(budget="2GiB")
