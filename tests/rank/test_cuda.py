"""Spans on a CUDA device: the bookkeeping with a stand-in for the device, and the whole on a real one."""

import itertools
import time

import pytest
import torch

from ddp_lesson.rank import MemoryMeter, cuda, span
from ddp_lesson.rank.records import lines
from ddp_lesson.rank.spans import write

from .conftest import read


class Device:
    """Stands in for ``torch.cuda``: a stream whose work is done only when `done` is moved on, in milliseconds."""

    def __init__(self):
        self.now = self.done = 0.0
        self.broken = self.capturing = False
        device = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                if device.broken:
                    raise RuntimeError("CUDA error")
                self.at = device.now

            def query(self):
                if device.broken:
                    raise RuntimeError("CUDA error")
                return self.at <= device.done

            def synchronize(self):
                device.done = max(device.done, self.at)

            def elapsed_time(self, other):
                assert self.query() and other.query()
                return other.at - self.at

        self.Event = Event

    def current_device(self):
        return 0

    def is_current_stream_capturing(self):
        return self.capturing

    def synchronize(self, device):
        self.done = self.now


@pytest.fixture
def device(run_dir, monkeypatch):
    registered = []
    monkeypatch.setattr(cuda.atexit, "register", registered.append)
    monkeypatch.setattr(cuda, "_EXIT_S", 0.01)
    device = Device()
    device.clock = cuda.Clock(device)
    assert registered == [device.clock.finish]
    return device


def spend(device, name, milliseconds):
    mark = device.clock.mark()
    now = time.monotonic_ns()
    device.now += milliseconds
    write(lines(), name, now, now + 1000, "", mark)


def test_a_line_waits_for_the_device_and_carries_both_times(device, run_dir):
    spend(device, "forward", 30)
    spend(device, "backward", 60)
    assert read(run_dir) == []
    device.done = 40.0
    spend(device, "optimizer", 1)
    assert [row["name"] for row in read(run_dir)] == ["forward"]
    device.done = 91.0
    device.clock.finish()
    forward, backward, optimizer = read(run_dir)
    assert [row["duration"] for row in (forward, backward, optimizer)] == [0.03, 0.06, 0.001]
    assert forward["device"] == "cuda:0" and forward["host_duration"] == 1e-6
    assert backward["t"] - forward["t"] == pytest.approx(0.03, abs=2e-6)
    assert abs(forward["t"] - forward["host_t"]) < 1


def test_a_device_that_is_stuck_at_exit_costs_no_line(device, run_dir):
    spend(device, "forward", 30)
    device.clock.finish()
    (row,) = read(run_dir)
    assert row["name"] == "forward" and row["duration"] == 1e-6 and "device" not in row


def test_a_device_that_fails_or_is_captured_leaves_the_times_of_the_host(device, run_dir):
    spend(device, "forward", 30)
    device.broken = True
    spend(device, "backward", 30)
    device.broken, device.capturing = False, True
    spend(device, "captured", 30)
    device.broken = True
    device.clock.finish()
    assert sorted(row["name"] for row in read(run_dir) if "device" not in row) == ["backward", "captured", "forward"]


def test_times_stay_on_one_axis_when_the_reference_is_renewed(device, run_dir):
    for _ in range(4):
        spend(device, "step", 50_000)
        device.done = device.now
        device.clock.write_done()
    starts = [row["t"] for row in read(run_dir)]
    assert [b - a for a, b in itertools.pairwise(starts)] == pytest.approx([50.0] * 3, abs=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_on_a_real_device_a_span_lasts_as_long_as_its_kernels(run_dir):
    x = torch.ones(4096, 4096, device="cuda")
    with span("warm up"):
        x @ x
    with span("matmul"):
        for _ in range(20):
            x @ x
    with MemoryMeter() as meter:
        y = torch.ones(1 << 20, device="cuda")
        del y
    torch.cuda.synchronize()
    with span("after"):
        pass
    cuda._clock.finish()
    rows = {row["name"]: row for row in read(run_dir) if row["kind"] == "span"}
    assert rows["matmul"]["duration"] > rows["matmul"]["host_duration"]
    assert rows["matmul"]["t"] >= rows["warm up"]["t"] + rows["warm up"]["duration"] - 1e-5
    assert rows["after"]["t"] >= rows["matmul"]["t"] + rows["matmul"]["duration"] - 1e-5
    assert abs(rows["warm up"]["t"] - rows["warm up"]["host_t"]) < 1
    assert meter.source == "allocated" and meter.peak_by_category == {"allocated": meter.peak_bytes}
    assert meter.peak_bytes - meter.timeline[0][1] >= 4 << 20
