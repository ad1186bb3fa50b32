"""One process without a run directory: nothing is written and no hook is registered."""

import os

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import MemoryMeter, record, record_communication, span

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DistributedDataParallel(torch.nn.Linear(2, 2))
record_communication(model)
model.register_comm_hook(None, allreduce_hook)  # DDP allows one: so ours is not there
with MemoryMeter(model) as meter, span("backward", step=1):
    model(torch.ones(1, 2)).sum().backward()
record(loss=torch.ones(1), step=1)
print("peak", meter.peak_bytes > 0, flush=True)
os._exit(0)
