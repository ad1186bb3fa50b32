"""Two ranks, of which rank 1 is killed in the middle of a line."""

import os
import signal
import time

from ddp_lesson.rank import record, records

record(step=1, note="before")
if os.environ["RANK"] == "1":
    # what a write leaves that is killed between two pages
    os.write(os.open(records.lines().path, os.O_WRONLY | os.O_APPEND), b'{"rank":1,"t":0.5,"name":"rec')
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)  # until torchrun ends it
