"""What needs NCCL and real devices."""

from __future__ import annotations

import pytest
import torch

from ddp_lesson import torchrun

DEVICES = torch.cuda.device_count() if torch.cuda.is_available() else 0
SCRIPT = """
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import MemoryMeter, record, record_communication, span

local_rank = int(os.environ["LOCAL_RANK"])
accelerator = torch.accelerator.current_accelerator(check_available=True)
device = torch.device(accelerator.type, local_rank) if accelerator else torch.device("cpu")
dist.init_process_group(dist.get_default_backend_for_device(device), device_id=device if accelerator else None)
model = DistributedDataParallel(torch.nn.Linear(512, 512).to(device), device_ids=[local_rank] if accelerator else None)
record_communication(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with MemoryMeter(model, optimizer) as meter:
    for step in range(6):
        with span("forward", step=step):
            loss = model(torch.randn(64, 512, device=device)).square().mean()
        with span("backward", step=step):
            loss.backward()
        with span("optimizer", step=step):
            optimizer.step()
            optimizer.zero_grad()
        record(step=step, loss=loss)
record(name="end", backend=dist.get_backend(), device=str(device), peak=meter.peak_bytes, source=meter.source)
dist.destroy_process_group()
"""

pytestmark = pytest.mark.gpu
needs_one = pytest.mark.skipif(DEVICES < 1, reason="no CUDA device here")
needs_two = pytest.mark.skipif(DEVICES < 2, reason=f"needs 2 CUDA devices, here are {DEVICES}")


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.setenv("DDP_LESSON_HOME", str(tmp_path))
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def ends(run) -> list[dict]:
    """The last record of each rank."""
    assert run.ok, (run.failure, run.ranks[0].stderr)
    return sorted((row for row in run.records if row["name"] == "end"), key=lambda row: row["rank"])


@needs_one
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_one_rank_on_one_gpu_uses_nccl(script, cold):
    (end,) = ends(torchrun(script, nproc_per_node=1, timeout=100, cold=cold))
    assert (end["backend"], end["device"], end["source"]) == ("nccl", "cuda:0", "allocated")
    assert end["peak"] > 2 * 4 * 512 * 512


@needs_one
def test_spans_on_a_gpu_are_in_the_order_of_the_step(script):
    run = torchrun(script, nproc_per_node=1, timeout=100)
    spans = [row for row in run.records if row["kind"] == "span" and row.get("step") == 4]
    begins = {row["name"]: row["t"] for row in spans}
    assert begins["forward"] < begins["backward"] < begins["optimizer"]
    assert all(row["duration"] >= 0 for row in spans)


@needs_one
def test_more_ranks_than_gpus_run_with_gloo_on_the_cpu_and_it_is_said(script):
    run = torchrun(script, nproc_per_node=DEVICES + 1, timeout=100)
    assert {end["backend"] for end in ends(run)} == {"gloo"}
    assert any("NCCL refuses two ranks on one GPU" in note for note in run.notes)


@needs_two
def test_without_a_number_there_is_one_rank_per_gpu_with_nccl(script):
    found = ends(torchrun(script, timeout=100))
    assert [end["device"] for end in found] == [f"cuda:{rank}" for rank in range(min(DEVICES, 4))]
    assert {end["backend"] for end in found} == {"nccl"}
