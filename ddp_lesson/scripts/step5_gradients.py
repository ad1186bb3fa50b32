import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

reductions = []


def hook(state, bucket):
    reductions.append(bucket)
    print(f"in backward:                 own gradient {bucket.buffer().item()}")
    return allreduce_hook(state, bucket)


dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
model.register_comm_hook(None, hook)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
weight = model.module.weight

loss = model(torch.tensor([[dist.get_rank() + 1.0]])).sum()
print(f"after forward:  reductions {len(reductions)}, gradient {weight.grad}")
loss.backward()
print(f"after backward: reductions {len(reductions)}, gradient {weight.grad.item()}")
optimizer.step()
print(f"after step:     reductions {len(reductions)}, gradient {weight.grad.item()}")
dist.destroy_process_group()
