"""`make lab` opens JupyterLab on the first notebook, for this machine and this person only."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def lab():
    """The address that a running `make lab` prints, and its process."""
    if not (ROOT / ".venv" / ".ready").exists():
        pytest.skip("make has not set up .venv here")
    flags = "LAB_FLAGS=--no-browser --ServerApp.port=0 --ServerApp.port_retries=0"
    process = subprocess.Popen(
        ["make", "lab", flags], cwd=ROOT, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        url = next(found.group() for line in process.stderr if (found := re.search(r"http://\S+token=\w+", line)))
        yield url, process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def test_lab_listens_on_this_machine_only_and_asks_for_its_token(lab):
    url, process = lab
    assert "/lab/tree/notebooks/0_start.ipynb?token=" in url
    listening = set()
    until = time.monotonic() + 30
    while not listening and time.monotonic() < until:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        listening = {c.laddr.ip for p in family for c in p.net_connections() if c.status == psutil.CONN_LISTEN}
    assert listening and listening <= {"127.0.0.1", "::1"}
    base, _, token = re.match(r"(http://[^/]+)/.*?(\?)(token=\w+)", url).groups()
    with urllib.request.urlopen(f"{base}/api/contents/notebooks/0_start.ipynb?{token}&content=0") as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{base}/api/contents")
