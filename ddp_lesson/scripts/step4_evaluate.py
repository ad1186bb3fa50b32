import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.utils.data import DistributedSampler

from ddp_lesson.rank import record

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
digits = load_digits()
x, y = torch.tensor(digits.data), torch.tensor(digits.target)
test_x, test_y = x[1440:], y[1440:]
means = torch.stack([x[:1440][y[:1440] == k].mean(0) for k in range(10)])


def accuracy(indices, name):
    """Sums and counts over all ranks: exact also if ranks hold different numbers."""
    right = (torch.cdist(test_x[indices], means).argmin(1) == test_y[indices]).sum()
    both = torch.tensor([right, len(indices)])
    dist.all_reduce(both)
    record(name=name, samples=list(indices), dataset_size=len(test_y))
    if rank == 0:
        print(f"{name}: {both[0]} of {both[1]} right, {both[0] / both[1]:.4%}")


accuracy(list(DistributedSampler(test_y, shuffle=False)), "sampler")
accuracy(range(rank, len(test_y), world_size), "own stride")
dist.destroy_process_group()
