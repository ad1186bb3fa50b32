"""Two epochs on the digits; then a few steps in which rank 1 is late, and a few with one bucket."""

import os
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp_lesson.rank import MemoryMeter, record, record_communication, span
from ddp_lesson.rank.records import forget


def train(folder, epochs, steps, width, depth, cap, late=0.0, **sampling):
    os.environ["DDP_LESSON_RUN_DIR"] = os.path.join(base, folder)
    os.makedirs(os.environ["DDP_LESSON_RUN_DIR"], exist_ok=True)
    forget()
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, width), torch.nn.ReLU()]
    for _ in range(depth):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)), bucket_cap_mb=cap)
    record_communication(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    sampler = DistributedSampler(data, **sampling)
    loader = DataLoader(data, batch_size=128, sampler=sampler)
    step = 0
    record(name="start", dataset_size=len(data))
    with MemoryMeter(model, optimizer):
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            batches = iter(loader)
            for _ in range(min(steps, len(loader))):
                with span("data", step=step):
                    time.sleep(late * rank)
                    x, y, index = next(batches)
                with span("forward", step=step):
                    loss = torch.nn.functional.cross_entropy(model(x), y)
                with span("backward", step=step):
                    loss.backward()
                with span("optimizer", step=step):
                    optimizer.step()
                    optimizer.zero_grad()
                record(
                    loss=loss,
                    grad_scale=1.0,
                    samples=index.tolist(),
                    epoch=epoch,
                    step=step,
                    total=epochs * len(loader),
                )
                step += 1
    print(f"rank {rank} has trained {step} steps")


base = os.environ["DDP_LESSON_RUN_DIR"]
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
data = TensorDataset(x, y, torch.arange(len(x)))
dist.init_process_group("gloo")
rank = dist.get_rank()
train("", epochs=2, steps=99, width=256, depth=3, cap=0.2)
train("late", epochs=1, steps=6, width=128, depth=4, cap=0.1, late=0.06)
train("one-bucket", epochs=1, steps=8, width=512, depth=2, cap=100, shuffle=False)
dist.destroy_process_group()
