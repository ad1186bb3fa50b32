import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp_lesson.rank import record

dist.init_process_group("gloo")
images = torch.tensor(load_digits().images)
data = TensorDataset(images, torch.arange(len(images)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for _, indices in loader:
        record(samples=indices.tolist(), epoch=epoch, dataset_size=len(data))
dist.destroy_process_group()
