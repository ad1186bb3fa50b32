import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.Linear(1, 1)
before = model.weight.item()
model = DistributedDataParallel(model)
record(before=before, after=model.module.weight)
dist.destroy_process_group()
