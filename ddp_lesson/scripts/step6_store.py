import os
import sys

import torch.distributed as dist

from ddp_lesson.rank import record

store, rank, world_size = next(dist.rendezvous("env://"))
if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    if rank == 0:  # look, before anybody has written in this attempt
        record(old_address=store.check(["default_pg/0//cpu//0/0"]))
    sys.exit()
dist.init_process_group("gloo")
if "--crash" in sys.argv:
    sys.exit(1)
dist.destroy_process_group()
