"""Strong and weak scaling on 1, 2 and 4 ranks, against one process with all cores. Part of `make bench`."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
from pathlib import Path

import torch

from ddp_lesson import torchrun
from ddp_lesson.show.scaling import speed_up

SCRIPT = Path(__file__).resolve().parents[1] / "ddp_lesson" / "scripts" / "step6_scaling.py"
RANKS = (1, 2, 4)
BATCH = 32
ROUNDS = 5


def seconds(ranks: int, batch: int, threads: int = 1) -> float:
    """Seconds for a step of one launch: the fastest block of steps."""
    args = ["--batch", batch, "--threads", threads]
    run = torchrun(SCRIPT, *args, nproc_per_node=ranks, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    if not run.ok:
        raise RuntimeError(run.ranks[0].stderr)
    return min(row["seconds"] for row in run.records if row["rank"] == 0)


def measure() -> dict[tuple[str, int], float]:
    """(kind, ranks or threads) → seconds for a step: medians of several rounds, the kinds in turn in each."""
    cores = os.cpu_count() or 1
    jobs = {("strong", n): (n, BATCH // n, 1) for n in RANKS}
    jobs |= {("weak", n): (n, BATCH, 1) for n in RANKS}
    jobs[("alone", cores)] = (1, BATCH, cores)
    found: dict[tuple[str, int], list[float]] = {key: [] for key in jobs}
    for _ in range(ROUNDS):
        for key, job in jobs.items():
            found[key].append(seconds(*job))
    return {key: statistics.median(times) for key, times in found.items()}


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["DDP_LESSON_HOME"] = home
        found = measure()
    cores = os.cpu_count()
    print(f"{cores} cores, Python {platform.python_version()}, torch {torch.__version__}, medians of {ROUNDS}")
    print("a small convolutional net, one thread per rank, gloo; work in the same time, one rank being 1\n")
    for kind in ("strong", "weak"):
        times = {n: found[kind, n] for n in RANKS}
        for n, gain in speed_up(times, work=kind == "weak").items():
            batch = BATCH if kind == "weak" else BATCH // n
            what = f"{kind}: {n} rank{'s' * (n > 1)} x {batch} samples"
            print(f"{what:<32} {1e3 * times[n]:>8.1f} ms  {gain:>5.2f} of ideal {n}")
    alone = found["alone", cores]
    what = f"one process, {cores} threads"
    print(f"{what:<32} {1e3 * alone:>8.1f} ms  {found['strong', 1] / alone:>5.2f}")


if __name__ == "__main__":
    main()
