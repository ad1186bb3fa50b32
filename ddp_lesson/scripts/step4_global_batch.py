import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lesson.rank import record

dist.init_process_group("gloo")
data = torch.arange(1797)
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
global_batch = 32 * dist.get_world_size()
record(per_rank=32, global_batch=global_batch, steps=len(loader))
dist.destroy_process_group()
