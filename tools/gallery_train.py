"""The training that the README's timeline shows: a few buckets, a real all-reduce for each."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record, record_communication, span

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(*(nn.Sequential(nn.Linear(384, 384), nn.ReLU()) for _ in range(8)), nn.Linear(384, 10))
model = DistributedDataParallel(net, bucket_cap_mb=1)
record_communication(model)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(6):
    with span("data", step=step):
        images, labels = torch.randn(256, 384), torch.randint(10, (256,))
    with span("forward", step=step):
        loss = nn.functional.cross_entropy(model(images), labels)
    with span("backward", step=step):
        loss.backward()
    with span("optimizer", step=step):
        optimizer.step()
        optimizer.zero_grad()
    record(step=step, total=6, loss=loss)
dist.destroy_process_group()
