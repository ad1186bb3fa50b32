import os

import torch.distributed as dist

dist.init_process_group("gloo")
print("rank", dist.get_rank(), "of world_size", dist.get_world_size())
print("local_rank", os.environ["LOCAL_RANK"])
dist.destroy_process_group()
