import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(1))
print(model)
try:
    DistributedDataParallel(model)
except ValueError as error:
    print(error)
dist.destroy_process_group()
