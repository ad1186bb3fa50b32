import os

import torch
import torch.distributed as dist

from ddp_lesson.rank import record

dist.init_process_group("gloo")
ranks = torch.ones(1)
dist.all_reduce(ranks)
node, local_rank = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_RANK"])
job = os.environ["TORCHELASTIC_RUN_ID"]
record(node=node, local_rank=local_rank, world_size=dist.get_world_size(), answered=int(ranks), job=job)
dist.destroy_process_group()
