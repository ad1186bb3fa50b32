import argparse
import hashlib
import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", default="")
parser.add_argument("--crash-at", type=int)
args = parser.parse_args()
dist.init_process_group("gloo", timeout=timedelta(seconds=30))
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
saved = {"step": 0}
if os.path.exists(args.checkpoint):
    saved = torch.load(args.checkpoint, map_location="cpu")
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])

for step in range(saved["step"], 20):
    if (rank, attempt, step) == (1, 0, args.crash_at):
        os.kill(os.getpid(), signal.SIGKILL)
    x = torch.randn(32, 8, generator=torch.Generator().manual_seed(2 * step + rank))
    loss = (model(x).squeeze(1) - x.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    record(step=step, total=20, loss=loss, pid=os.getpid())
    if args.checkpoint and rank == 0 and (step + 1) % 5 == 0:
        saved = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
        torch.save(saved, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)
    dist.barrier()
numbers = torch.cat([p.detach().flatten() for p in model.parameters()])
record(checksum=hashlib.sha256(numbers.numpy().tobytes()).hexdigest())
dist.destroy_process_group()
