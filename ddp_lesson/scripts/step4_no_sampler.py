import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

from ddp_lesson.rank import record

dist.init_process_group("gloo")
data = torch.arange(12)
loader = DataLoader(data, batch_size=4)
for batch in loader:
    record(samples=batch.tolist(), dataset_size=len(data))
dist.destroy_process_group()
