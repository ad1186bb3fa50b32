import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lesson.rank import record

dist.init_process_group("gloo")
data = torch.arange(12)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, shuffle=False, sampler=sampler)
for batch in loader:
    record(samples=batch.tolist(), dataset_size=len(data))
dist.destroy_process_group()
