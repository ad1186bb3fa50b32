import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
torch.manual_seed(0)
own = torch.Generator().manual_seed(0 + dist.get_rank())
for step in range(12):
    common_noise = torch.rand(1)
    own_noise = torch.rand(1, generator=own)
    record(step=step, common_noise=common_noise, own_noise=own_noise)
dist.destroy_process_group()
