import os

import torch
import torch.distributed as dist

from ddp_lesson.rank import span

dist.init_process_group("gloo")
a = torch.randn(800, 800)
for name, threads in (("work on one thread", 1), ("work on every core", os.cpu_count())):
    torch.set_num_threads(threads)
    a @ a
    dist.barrier()
    with span(name):
        for _ in range(20):
            a @ a
dist.destroy_process_group()
