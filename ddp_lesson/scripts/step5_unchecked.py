import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

dist.init_process_group("gloo")
rank = dist.get_rank()
first, second = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
nn.init.constant_(first.weight, 1)
nn.init.constant_(second.weight, 2)
layers = [first, second] if rank == 0 else [second, first]
model = DistributedDataParallel(nn.Sequential(*layers))
print(f"first {first.weight.item():g}, second {second.weight.item():g}")

nn.init.constant_(first.weight, 5 + rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    record(step=step, weight=first.weight)
    loss = model(torch.ones(1, 1)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
