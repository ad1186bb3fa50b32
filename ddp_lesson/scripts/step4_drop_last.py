import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lesson.rank import record

dist.init_process_group("gloo")
data = torch.arange(10)
sampler = DistributedSampler(data, shuffle=False, drop_last=True)
loader = DataLoader(data, batch_size=2, sampler=sampler)
for batch in loader:
    record(samples=batch.tolist(), dataset_size=len(data))
dist.destroy_process_group()
