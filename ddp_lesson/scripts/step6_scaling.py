import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_lesson.rank import record

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()
torch.set_num_threads(args.threads)
dist.init_process_group("gloo")

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 24 * 24, 10)
)
model = DistributedDataParallel(model)
images, labels = torch.randn(args.batch, 1, 28, 28), torch.randint(10, (args.batch,))
for block in range(5):
    dist.barrier()
    start = time.perf_counter()
    for step in range(4):
        nn.functional.cross_entropy(model(images), labels).backward()
    dist.barrier()
    record(block=block, seconds=(time.perf_counter() - start) / 4)
dist.destroy_process_group()
