import time

import torch
import torch.distributed as dist

from ddp_lesson.rank import record, span

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(3):
    with span("work", step=step):
        time.sleep(0.1 * (rank + 1))
    with span("all-reduce", step=step):
        dist.all_reduce(torch.ones(1))
    record(step=step, total=3)
dist.destroy_process_group()
