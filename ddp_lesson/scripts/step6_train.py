import argparse
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp_lesson.rank import record

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--checkpoint", default="")
args = parser.parse_args()
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
model = DistributedDataParallel(model, device_ids=[local_rank] if accelerator else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

saved = {"epoch": 0}
if os.path.exists(args.checkpoint):
    saved = torch.load(args.checkpoint, map_location=device)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
for epoch in range(saved["epoch"], args.epochs):
    sampler.set_epoch(epoch)
    for step, (images, labels) in enumerate(loader, start=epoch * len(loader)):
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record(step=step, total=args.epochs * len(loader), loss=loss)
    if args.checkpoint and dist.get_rank() == 0:
        saved = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        torch.save(saved, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)
    dist.barrier()
with torch.no_grad():
    mine = test[dist.get_rank() :: dist.get_world_size()]
    right = (model.module(x[mine].to(device)).argmax(1) == y[mine].to(device)).sum()
dist.all_reduce(right)
if dist.get_rank() == 0:
    print(f"test accuracy {right / len(test):.1%}")
dist.destroy_process_group()
