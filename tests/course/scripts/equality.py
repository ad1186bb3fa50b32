"""Train one small model for twenty steps in float64 and record all its parameters after each step.

equality.py VARIANT OPTIMIZER: one rank trains without DDP on the whole batch, several in DDP, each on its part of it.
"""

import sys
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

STEPS, BATCH, MICRO = 20, 16, 4


class Net(nn.Module):
    """Two layers and a third that can share the first one's weight."""

    def __init__(self, tied):
        super().__init__()
        self.first = nn.Linear(6, 10)
        self.second = nn.Linear(10, 10)
        self.third = nn.Linear(6, 10, bias=False)
        if tied:
            self.third.weight = self.first.weight

    def forward(self, x):
        return torch.tanh(self.second(torch.tanh(self.first(x)))) @ self.third.weight


variant, optimizer_name = sys.argv[1:]
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x, y = torch.randn(STEPS, BATCH, 6), torch.randn(STEPS, BATCH, 6)
net = Net(tied=variant == "tied")
if variant == "frozen":
    net.second.requires_grad_(False)

model, mine = net, slice(None)
if world_size > 1:
    mine = slice(rank, None, world_size)
    if variant == "uneven":
        mine = slice(0, 12) if rank == 0 else slice(12 + rank - 1, BATCH, world_size - 1)
    if variant != "unwrapped":
        model = DistributedDataParallel(net)

trained = [p for p in net.parameters() if p.requires_grad]
if optimizer_name == "sgd":
    # a sum over 96 numbers wants smaller steps than their mean
    optimizer = torch.optim.SGD(trained, lr=0.001 if variant == "sum" else 0.1, momentum=0.9)
else:
    optimizer = torch.optim.AdamW(trained, lr=0.01, weight_decay=0.1)

reduction = "sum" if variant == "sum" else "mean"
parts = MICRO if world_size > 1 and variant in ("accumulated", "not synced") else 1
for step in range(STEPS):
    optimizer.zero_grad()
    pairs = zip(x[step, mine].chunk(parts), y[step, mine].chunk(parts), strict=True)
    for number, (inputs, targets) in enumerate(pairs):
        quiet = parts > 1 and (number < parts - 1 or variant == "not synced")
        with model.no_sync() if quiet else nullcontext():
            loss = nn.functional.mse_loss(model(inputs), targets, reduction=reduction) / parts
            loss.backward()
    optimizer.step()
    record(step=step, **{name: p.flatten().tolist() for name, p in net.named_parameters()})
dist.destroy_process_group()
