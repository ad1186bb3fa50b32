"""Steps with a record and four spans between steps without, block by block in one process; prints the ratio."""

import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record, span

dist.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(128, 256)


def plain(step):
    batch = x + 1
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def recorded(step):
    with span("data", step=step):
        batch = x + 1
    with span("forward", step=step):
        loss = model(batch).square().mean()
    with span("backward", step=step):
        loss.backward()
    with span("optimizer", step=step):
        optimizer.step()
        optimizer.zero_grad()
    record(step=step, loss=loss)


times = {plain: [], recorded: []}
for block in range(41):
    for kind in (plain, recorded) if block % 2 else (recorded, plain):
        begin = time.perf_counter()
        for step in range(20):
            kind(step)
        if block:  # the first block warms up
            times[kind].append((time.perf_counter() - begin) / 20)
if dist.get_rank() == 0:
    print(statistics.median(times[plain]), statistics.median(times[recorded]))
dist.destroy_process_group()
