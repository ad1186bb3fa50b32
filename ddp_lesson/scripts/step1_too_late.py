import os

import torch


def now():
    if torch.cuda.is_available():
        torch.ones(1, device="cuda")
    return torch.cuda.device_count(), torch.get_num_threads()


gpus, threads = now()
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["OMP_NUM_THREADS"] = "7"
gpus_later, threads_later = now()
print("GPUs:", gpus, "->", gpus_later)
print("threads:", threads, "->", threads_later)
