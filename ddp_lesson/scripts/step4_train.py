import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp_lesson.rank import record

local_rank = int(os.environ["LOCAL_RANK"])
accelerator = torch.accelerator.current_accelerator(check_available=True)
device = torch.device(accelerator.type, local_rank) if accelerator else torch.device("cpu")
if accelerator:
    torch.accelerator.set_device_index(local_rank)
dist.init_process_group(dist.get_default_backend_for_device(device), device_id=device if accelerator else None)

torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
mixed = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
train, test = mixed[:1440], mixed[1440:]
data = TensorDataset(x[train], y[train])
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=64 // dist.get_world_size(), sampler=sampler)

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

step = 0
for epoch in range(20):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record(step=step, total=20 * len(loader), loss=loss)
        step += 1

with torch.no_grad():
    right = (model(x[test].to(device)).argmax(1) == y[test].to(device)).sum()
print(f"test accuracy {right / len(test):.1%}")
dist.destroy_process_group()
