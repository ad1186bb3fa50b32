"""Fails on rank 1 under torch's own record."""

import os
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("wrong on rank 1")
    time.sleep(60)


main()
