import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("this rank has a bug")
dist.all_reduce(torch.ones(1))
