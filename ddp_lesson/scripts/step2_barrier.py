import time

import torch.distributed as dist

from ddp_lesson.rank import span

dist.init_process_group("gloo")
dist.barrier()
for step in range(2):
    with span("work", step=step):
        time.sleep(0.1 * (dist.get_rank() + 1))
    with span("barrier", step=step):
        dist.barrier()
dist.destroy_process_group()
