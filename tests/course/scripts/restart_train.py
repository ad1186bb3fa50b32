"""Train in DDP with a checkpoint after every third step and record the parameters at the end, as bytes.

restart_train.py CHECKPOINT CRASH_AT [VARIANT]: rank 1 is killed at step CRASH_AT of its first attempt; -1: never.
Without "optimizer" in the checkpoint (VARIANT "no-optimizer") a restart is another training.
"""

import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lesson.rank import record

STEPS, EVERY = 12, 3

checkpoint, crash_at, variant = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", timeout=timedelta(seconds=30))
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

torch.manual_seed(0)
data = torch.randn(STEPS * 8, 7)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
sampler.set_epoch(3)
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
model = DistributedDataParallel(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)

start = 0
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint, map_location="cpu")
    start = saved["step"]
    net.load_state_dict(saved["model"])
    if variant != "no-optimizer":
        optimizer.load_state_dict(saved["optimizer"])

for step, batch in enumerate(loader):
    if step < start:
        continue
    if (rank, attempt, step) == (1, 0, crash_at):
        os.kill(os.getpid(), signal.SIGKILL)
    loss = nn.functional.mse_loss(model(batch[:, :6]), batch[:, 6:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    record(step=step, loss=loss, pid=os.getpid())
    if rank == 0 and (step + 1) % EVERY == 0:
        saved = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
        torch.save(saved, checkpoint + ".new")
        os.replace(checkpoint + ".new", checkpoint)
    dist.barrier()
numbers = [p.detach().numpy().tobytes().hex() for p in net.parameters()]
record(name="end", parameters=numbers)
dist.destroy_process_group()
