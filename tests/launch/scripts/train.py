"""A small DDP training; the rank that is named raises an exception with the text that is given."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    if step == 1 and sys.argv[1:2] == [os.environ["RANK"]]:
        raise ValueError(sys.argv[2])
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()}")
dist.destroy_process_group()
