import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp_lesson.rank import record

local_rank = int(os.environ["LOCAL_RANK"])
accelerator = torch.accelerator.current_accelerator(check_available=True)
device = torch.device(accelerator.type, local_rank) if accelerator else torch.device("cpu")
backend = dist.get_default_backend_for_device(device)
dist.init_process_group(backend, device_id=device if accelerator else None)

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
data = TensorDataset(x, torch.tensor(digits.target), torch.arange(len(x)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
model = DistributedDataParallel(model, device_ids=[local_rank] if accelerator else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

step, total = 0, 2 * len(loader)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for images, labels, indices in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record(step=step, total=total, loss=loss, epoch=epoch, samples=indices.tolist(), dataset_size=len(data))
        step += 1
dist.destroy_process_group()
