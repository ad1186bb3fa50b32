import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

dist.init_process_group("gloo")
mine = slice(dist.get_rank(), None, dist.get_world_size())
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x, y = torch.randn(20, 16, 8), torch.randn(20, 16, 1)


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


for name, make in ("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW):
    alone = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    ddp = DistributedDataParallel(copy.deepcopy(alone))
    optimizers = make(alone.parameters(), lr=0.01), make(ddp.parameters(), lr=0.01)
    for step in range(20):
        train_step(alone, optimizers[0], x[step], y[step])
        train_step(ddp, optimizers[1], x[step, mine], y[step, mine])
        pairs = zip(alone.parameters(), ddp.parameters(), strict=True)
        difference = max((p - q).abs().max().item() for p, q in pairs)
        record(**{"step": step, f"{name}_difference": difference})
dist.destroy_process_group()
