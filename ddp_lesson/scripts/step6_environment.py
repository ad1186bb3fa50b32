import os

local_rank = int(os.environ["LOCAL_RANK"])
print("environment:", local_rank)
