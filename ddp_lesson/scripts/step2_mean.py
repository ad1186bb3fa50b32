import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
gradient = torch.tensor([1.0, 10.0]) * 2 ** dist.get_rank()
record(name="before", values=gradient.tolist())
dist.all_reduce(gradient)
gradient /= dist.get_world_size()
record(name="after", values=gradient.tolist())
dist.destroy_process_group()
