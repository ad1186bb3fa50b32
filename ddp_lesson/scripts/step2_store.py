import os

import torch.distributed as dist

address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(address, port, is_master=False)
if os.environ["RANK"] == "0":
    store.set("note", "rank 0 was here")
else:
    print(store.get("note").decode())
