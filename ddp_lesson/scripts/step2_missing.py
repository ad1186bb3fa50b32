import time
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 2:
    time.sleep(2)
else:
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=1))
    except RuntimeError as error:
        if dist.get_rank() == 0:
            print(str(error).splitlines()[0])
