import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record


class Told(nn.Linear):
    """Tells how many samples arrive."""

    def forward(self, x):
        record(inside=len(x))
        return super().forward(x)


dist.init_process_group("gloo")
model = DistributedDataParallel(Told(1, 1))
model(torch.ones(8, 1))
dist.destroy_process_group()
