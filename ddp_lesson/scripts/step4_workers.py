import os

import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info

from ddp_lesson.rank import record


class Told(Dataset):
    """Tells which process reads a sample."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        record(sample=index, worker=get_worker_info().id, pid=os.getpid())
        return index


dist.init_process_group("gloo")
data = Told()
sampler = DistributedSampler(data, shuffle=False)
for _ in DataLoader(data, batch_size=2, sampler=sampler, num_workers=2):
    pass
dist.destroy_process_group()
