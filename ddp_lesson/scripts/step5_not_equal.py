import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x, y = torch.randn(16, 8), torch.randn(16, 1)
plain = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
normed = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
half = slice(8 * rank, 8 * rank + 8)
uneven = slice(0, 12) if rank == 0 else slice(12, 16)


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def compare(name, alone, mine, reduction="mean", factor=1.0):
    """Print how far DDP's gradient is from that of one process with the whole batch."""
    alone = copy.deepcopy(alone)
    ddp = DistributedDataParallel(copy.deepcopy(alone))
    mse_loss(alone(x), y, reduction=reduction).backward()
    loss = factor * mse_loss(ddp(x[mine]), y[mine], reduction=reduction)
    loss.backward()
    off = (gradient(ddp) - gradient(alone)).norm() / gradient(alone).norm()
    if rank == 0:
        print(f"{name:30} off by {off:.0%}")


compare("mean loss, 8 and 8 samples", plain, half)
compare("sum of losses", plain, half, "sum")
compare("  times world_size", plain, half, "sum", world_size)
compare("12 and 4 samples", plain, uneven)
compare("  weighted by their number", plain, uneven, factor=len(x[uneven]) * world_size / 16)
compare("BatchNorm", normed, half)
dist.destroy_process_group()
