"""Two ranks: records from DataLoader workers, DDP with and without the communication hook, spans and memory."""

import copy
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from ddp_lesson.rank import MemoryMeter, record, record_communication, span


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        record(name="read", sample=i, pid=os.getpid())
        return i**2


def gradients(hook, **options):
    """Every gradient of four steps, the first half of each under no_sync."""
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(20, 30),
        torch.nn.Tanh(),
        torch.nn.Linear(30, 30),
        torch.nn.Tanh(),
        torch.nn.Linear(30, 3),
    ]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).double(), bucket_cap_mb=0.004, **options)
    if hook:
        record_communication(model)
        if not options:
            copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    found = []
    for step in range(4):
        with model.no_sync():
            model(torch.randn(7, 20, dtype=torch.float64, generator=generator)).square().sum().backward()
        model(torch.randn(7, 20, dtype=torch.float64, generator=generator)).square().sum().backward()
        found += [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
    kept.append(model)
    return found


kept = []  # a model that is freed after its process group may never come back
record(name="main", pid=os.getpid())
for batch in DataLoader(Squares(), batch_size=2, num_workers=2):
    record(squares=batch.tolist())

dist.init_process_group("gloo")
variants = {
    "plain": {},
    "bucket view": {"gradient_as_bucket_view": True},
    "unused": {"find_unused_parameters": True},
    "own group": {"process_group": dist.new_group([0, 1])},
}
for name, options in variants.items():
    without = gradients(False, **options)
    with span(name):
        hooked = gradients(True, **options)
    record(
        name="gradients",
        variant=name,
        same=all(torch.equal(a, b) for a, b in zip(without, hooked, strict=True)),
        tensors=len(hooked),
        largest=max(g.abs().max() for g in hooked),
    )

with MemoryMeter(kept[0]) as meter, span("big tensor"):
    big = torch.ones(8 << 20)  # 32 MiB
record(name="meter", peak=meter.peak_bytes, categories=meter.peak_by_category, timeline=meter.timeline)
dist.barrier()
dist.destroy_process_group()
