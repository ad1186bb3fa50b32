import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
data = torch.arange(12)
sampler = DistributedSampler(data)
try:
    loader = DataLoader(data, batch_size=4, shuffle=True, sampler=sampler)
except ValueError as error:
    print(error)
dist.destroy_process_group()
