import torch
import torch.distributed as dist

dist.init_process_group("gloo")
print("connected:", dist.is_initialized())
dist.destroy_process_group()
print("connected:", dist.is_initialized())
try:
    dist.all_reduce(torch.ones(1))
except ValueError as error:
    print(error)
