"""Says who it is and whom it has started, then stays until it is ended from outside.

Words: ddp (all-reduces for ever), stubborn (ignores INT and TERM, and so do its children), family (has children, also
one that has left the session, the process tree and the environment), stops (rank 1 stops itself).
"""

import json
import os
import signal
import subprocess
import sys
import time

words = sys.argv[1:]
rank = int(os.environ["RANK"])
children = []
if "stubborn" in words:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "family" in words:
    children.append(subprocess.Popen(["sleep", "60"]).pid)
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            os.execve("/bin/sleep", ["sleep", "60"], {})
        os.write(write, str(daemon).encode())
        os._exit(0)
    children.append(int(os.read(read, 20)))
if "ddp" in words:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    model(torch.ones(3, 4)).sum().backward()
print(json.dumps({"rank": rank, "pid": os.getpid(), "port": int(os.environ["MASTER_PORT"]), "children": children}))
if "stops" in words and rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
end = time.monotonic() + 60
while time.monotonic() < end:
    if "ddp" in words:
        dist.all_reduce(torch.ones(1))
    time.sleep(0.01)
