import torch
import torch.distributed as dist

try:
    dist.init_process_group("gloo", device_id=torch.device("cpu"))
except ValueError as error:
    print(error)
