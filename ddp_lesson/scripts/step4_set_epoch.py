import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lesson.rank import record

dist.init_process_group("gloo")
data = torch.arange(24)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch in loader:
        record(samples=batch.tolist(), epoch=epoch, dataset_size=len(data))
dist.destroy_process_group()
