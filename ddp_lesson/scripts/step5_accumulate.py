from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

reductions = []


def hook(state, bucket):
    reductions.append(bucket)
    return allreduce_hook(state, bucket)


dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
model.register_comm_hook(None, hook)

for inside in "nothing", "forward and backward", "forward", "backward":
    model.zero_grad()
    reductions.clear()
    for micro in range(4):
        x = torch.tensor([[10.0 * rank + micro]])
        with model.no_sync() if "forward" in inside and micro < 3 else nullcontext():
            loss = model(x).sum() / 4
        with model.no_sync() if "backward" in inside and micro < 3 else nullcontext():
            loss.backward()
    record(inside=inside, reductions=len(reductions), gradient=model.module.weight.grad)
dist.destroy_process_group()
