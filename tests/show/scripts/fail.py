"""Rank 1 raises in forward of step 1; rank 0 is then waiting for it in a barrier."""

import torch.distributed as dist

from ddp_lesson.rank import record, span

dist.init_process_group("gloo")
for step in range(3):
    with span("forward", step=step):
        record(samples=[2 * step + dist.get_rank()], loss=float("nan") if step == 1 else 1.0, step=step, dataset_size=6)
        if dist.get_rank() == 1 and step == 1:
            raise ValueError("a <b>broken</b> sample")
    dist.barrier()
