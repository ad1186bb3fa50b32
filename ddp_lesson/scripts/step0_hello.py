import os

rank = os.environ["RANK"]
world_size = os.environ["WORLD_SIZE"]
print(f"I am rank {rank} of {world_size}")
