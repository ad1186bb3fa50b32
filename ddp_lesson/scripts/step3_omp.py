import os

import torch

print("OMP_NUM_THREADS =", os.environ["OMP_NUM_THREADS"])
print("torch uses", torch.get_num_threads(), "thread(s)")
