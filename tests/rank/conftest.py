"""A run directory to record into, and real launches."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ddp_lesson.launch.run import Run
from ddp_lesson.rank import records

SCRIPTS = Path(__file__).parent / "scripts"


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device")


def recording_env(run_dir):
    """The environment in which a process records into `run_dir`; None for one that records nowhere."""
    env = {k: v for k, v in os.environ.items() if k not in ("DDP_LESSON_RUN_DIR", "DDP_LESSON_T0_NS", "RANK")}
    env["OMP_NUM_THREADS"] = "1"
    if run_dir is not None:
        env |= {"DDP_LESSON_RUN_DIR": str(run_dir), "DDP_LESSON_T0_NS": str(time.monotonic_ns())}
    return env


def python(*args, run_dir=None, cwd=None, timeout=60):
    """Run Python and wait for it; its whole process tree ends with it."""
    command = [sys.executable, *map(str, args)]
    process = subprocess.Popen(
        command, cwd=cwd, env=recording_env(run_dir), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        for child in [*psutil.Process(process.pid).children(recursive=True), process]:
            child.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def launch(script, run_dir):
    """Run a script of this folder on two ranks under torchrun, recording into `run_dir`."""
    options = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", 2]
    return python("-m", "torch.distributed.run", *options, SCRIPTS / script, run_dir=run_dir, cwd=run_dir)


def read(run_dir, nproc=1):
    """What was recorded, through the reader of runs."""
    (run_dir / "run.json").write_text(json.dumps({"nproc": nproc}))
    return Run.load(run_dir).records


@pytest.fixture(autouse=True)
def no_run(monkeypatch):
    """A test records nowhere unless it asks for a run directory, whatever the environment says."""
    for name in ("DDP_LESSON_RUN_DIR", "DDP_LESSON_T0_NS", "RANK"):
        monkeypatch.delenv(name, raising=False)
    records.forget()
    yield
    records.forget()


@pytest.fixture
def run_dir(monkeypatch, tmp_path, no_run):
    """A run directory that this process records into, as rank 3."""
    monkeypatch.setenv("DDP_LESSON_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("DDP_LESSON_T0_NS", str(time.monotonic_ns()))
    monkeypatch.setenv("RANK", "3")
    records.forget()
    return tmp_path
