import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
x = torch.tensor([dist.get_rank()])
dist.all_reduce(x)
record(after=x)
dist.destroy_process_group()
