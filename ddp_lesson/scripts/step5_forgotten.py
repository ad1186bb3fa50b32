import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.ones(1, 1), torch.full((1, 1), float(dist.get_rank()))
for step in range(20):
    record(step=step, weight=model.module.weight)
    for micro in range(4):
        with model.no_sync():
            loss = nn.functional.mse_loss(model(x), target) / 4
            loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
