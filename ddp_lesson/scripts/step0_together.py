import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.tensor([dist.get_rank() + 1.0])
before = x.item()
dist.all_reduce(x)
print(f"{before} -> {x.item()}")
dist.destroy_process_group()
