import os

import torch

local_rank = int(os.environ["LOCAL_RANK"])
accelerator = torch.accelerator.current_accelerator(check_available=True)
device = torch.device(accelerator.type, local_rank) if accelerator else torch.device("cpu")
if accelerator:
    torch.accelerator.set_device_index(local_rank)
print("this rank keeps its tensors on", torch.ones(1, device=device).device)
