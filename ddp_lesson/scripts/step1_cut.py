import os
from itertools import takewhile

import torch

from ddp_lesson.rank import record

for value in (None, "2,0,5,1", "0,x,1", "0 1", "0;1", "0,0", "", "-1", "all"):
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if value is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = value
    listed = torch.cuda._parse_visible_devices()
    # torch would ask the machine how many GPUs it has; here: four
    record(value=value, sees=list(takewhile(lambda gpu: gpu < 4, listed)))
