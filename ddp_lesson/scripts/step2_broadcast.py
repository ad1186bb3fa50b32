import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
weights = torch.randn(4)
record(name="before", values=weights.tolist())
dist.broadcast(weights, src=0)
record(name="after", values=weights.tolist())
dist.destroy_process_group()
