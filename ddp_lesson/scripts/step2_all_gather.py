import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
mine = torch.tensor([10 * dist.get_rank() + 5])
parts = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
record(name="before", values=mine.tolist())
dist.all_gather(parts, mine)
record(name="after", values=torch.cat(parts).tolist())
dist.destroy_process_group()
