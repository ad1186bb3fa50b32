import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import span


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
        self.spare = nn.Linear(1, 1)

    def forward(self, x):
        return self.used(x)


dist.init_process_group("gloo")
models = {}
for name, flag in ("spare layer frozen", False), ("find_unused_parameters", True):
    net = Net()
    net.spare.requires_grad_(flag)
    models[name] = DistributedDataParallel(net, find_unused_parameters=flag)
for measurement in range(8):
    for name, model in models.items():
        with span(name, step=measurement):
            for _ in range(20):
                model(torch.ones(8, 64)).sum().backward()
dist.destroy_process_group()
