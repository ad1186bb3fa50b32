import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
x = torch.tensor([dist.get_rank() + 1.0])
record(name="before", values=x.tolist())
dist.all_reduce(x)
record(name="after", values=x.tolist())
dist.destroy_process_group()
