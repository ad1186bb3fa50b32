"""Starts processes of its own in every way that training scripts do."""

import multiprocessing
import os

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index**2


def double(queue, value):
    queue.put(2 * value)


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        loader = DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=method)
        print(method, torch.cat(list(loader)).tolist())
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=double, args=(queue, 21))
    child.start()
    print("child", queue.get(timeout=60))
    child.join()
    print("module", __import__("beside").NAME, "exit code", child.exitcode, os.path.basename(__file__))
