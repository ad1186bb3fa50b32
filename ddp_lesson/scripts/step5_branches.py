import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in range(3))

    def forward(self, x, branch):
        return self.branches[branch](x)


dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(Branches(), find_unused_parameters=True)
for step in range(3):
    model.zero_grad()
    model(torch.ones(1, 1), rank).sum().backward()
for number, branch in enumerate(model.module.branches):
    gradient = branch.weight.grad
    print(f"branch {number}: gradient {gradient if gradient is None else gradient.item()}")
dist.destroy_process_group()
