import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout

dist.init_process_group("gloo", timeout=timedelta(seconds=2))
if dist.get_rank() == 0:
    print("waiting 2 seconds; without timeout= it would be", default_pg_timeout)
    dist.all_reduce(torch.ones(1))
time.sleep(20)
