import os

for name in ("RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES"):
    print(f"{name}={os.environ[name]}")
