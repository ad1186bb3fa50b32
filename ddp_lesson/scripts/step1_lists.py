import os

import torch

from ddp_lesson.rank import record

for value in ("0,1,2,3", "0,1", "2,3", "3", "1,0"):
    os.environ["CUDA_VISIBLE_DEVICES"] = value
    record(value=value, sees=torch.cuda._parse_visible_devices())
