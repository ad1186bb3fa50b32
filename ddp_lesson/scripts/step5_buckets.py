import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record_communication, span

dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [nn.Linear(512, 512, bias=False) for _ in range(36)]
model = DistributedDataParallel(nn.Sequential(*layers))
record_communication(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(128, 512)
for step in range(4):
    with span("forward", step=step):
        loss = model(x).square().mean()
    with span("backward", step=step):
        loss.backward()
    with span("optimizer", step=step):
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
