import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.BatchNorm1d(1))
x = torch.full((8, 1), 10.0 * dist.get_rank())
for step in range(30):
    model(x).sum().backward()
    record(step=step, running_mean=model.module.running_mean)
if dist.get_rank() == 0:
    print("rank 0 saves", model.module.state_dict()["running_mean"].item())
dist.destroy_process_group()
