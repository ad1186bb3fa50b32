import torch.distributed as dist
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
plain = nn.Linear(2, 1)
model = DistributedDataParallel(nn.Linear(2, 1))


def load(name, into, state):
    try:
        into.load_state_dict(state)
        print(f"{name}: loaded")
    except RuntimeError as error:
        print(f"{name}:")
        for line in str(error).splitlines()[1:]:
            print("  ", line.strip())


if dist.get_rank() == 0:
    load("wrapped into plain", plain, model.state_dict())
    load("plain into wrapped", model, plain.state_dict())
    load("model.module into plain", plain, model.module.state_dict())
    old = model.state_dict()
    consume_prefix_in_state_dict_if_present(old, "module.")
    load("old file without its prefix", plain, old)
dist.destroy_process_group()
