import os

for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "OMP_NUM_THREADS"):
    print(f"{name}={os.environ[name]}")
print(*sorted(name for name in os.environ if name.startswith(("MASTER_", "TORCHELASTIC_"))))
