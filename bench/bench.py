"""Measures what the kit promises, side by side in one run, medians of several. `make bench`."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter_client.manager import start_new_kernel

from ddp_lesson import torchrun

HERE = Path(__file__).resolve().parent
TIMES = 5
CELL = "%%torchrun --nproc-per-node 2 bench_ddp.py\n" + (HERE / "ddp.py").read_text()


def seconds(work, *args) -> float:
    """Wall seconds of one call."""
    begin = time.perf_counter()
    work(*args)
    return time.perf_counter() - begin


def bare() -> None:
    """The script by torchrun, as a shell starts it."""
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(HERE / "ddp.py")]
    done = subprocess.run(words, capture_output=True, text=True)
    # About one bare run in forty aborts in gloo's threads after its last line, so the exit code does not count.
    if done.stdout.count("done") != 2:
        raise RuntimeError(done.stderr)


def run_cell(client, code: str) -> None:
    """One cell in a kernel; raises when it fails."""
    reply = client.execute_interactive(code, timeout=120, output_hook=lambda message: None)
    if reply["content"]["status"] != "ok":
        raise RuntimeError("\n".join(reply["content"]["traceback"]))


def in_kernels() -> dict[str, list[float]]:
    """Bare torchrun, the first cell, a warm cell and %load_ext, in turn, in a fresh kernel each time."""
    found: dict[str, list[float]] = {"bare": [], "load": [], "first": [], "warm": []}
    for _ in range(TIMES):
        found["bare"].append(seconds(bare))
        manager, client = start_new_kernel(kernel_name="python3")
        try:
            begin = time.perf_counter()
            found["load"].append(seconds(run_cell, client, "%load_ext ddp_lesson"))
            run_cell(client, CELL)
            found["first"].append(time.perf_counter() - begin)
            found["warm"].append(statistics.median(seconds(run_cell, client, CELL) for _ in range(3)))
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    return found


def agent_bytes() -> int:
    """Memory of one warm agent, as it says when it is ready."""
    from ddp_lesson.launch import client, plan

    agent = client.pool.start(plan.default_agent_env())
    agent.ready()
    return agent.rss


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["DDP_LESSON_HOME"] = home
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}; medians of {TIMES}\n")
        found = {name: statistics.median(times) for name, times in in_kernels().items()}
        plain, recorded = [], []
        for _ in range(TIMES):
            run = torchrun(str(HERE / "record.py"), nproc_per_node=2)
            a, b = map(float, run.ranks[0].stdout.split())
            plain.append(a)
            recorded.append(b)
        ratios = [b / a for a, b in zip(plain, recorded, strict=True)]
        megabytes = agent_bytes() / 2**20
    bare_s = found["bare"]
    rows = [
        ("bare torchrun, DDP on 2 ranks", f"{bare_s:.2f} s", "", ""),
        ("the same in a warm cell", f"{found['warm']:.2f} s", f"{found['warm'] / bare_s:.3f} of bare", "at most 0.07"),
        ("first cell, from %load_ext on", f"{found['first']:.2f} s", f"{found['first'] / bare_s:.2f} of bare", "≤ 1"),
        ("%load_ext in a fresh kernel", f"{found['load']:.3f} s", "", "at most 0.3 s"),
        ("a step of DDP on 2 ranks", f"{statistics.median(plain) * 1e3:.2f} ms", "", ""),
        (
            "with a record and four spans",
            f"{statistics.median(recorded) * 1e3:.2f} ms",
            f"{statistics.median(ratios):.3f} of plain",
            "at most 1.03",
        ),
        ("memory of the warm agent", f"{megabytes:.0f} MB", "", "at most 350 MB"),
    ]
    for what, value, ratio, target in rows:
        print(f"{what:<32} {value:>10}  {ratio:<16} {target}")


if __name__ == "__main__":
    main()
