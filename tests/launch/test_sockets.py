"""Nobody else gets in: every socket of a running launch that listens does so on this machine's own address."""

from __future__ import annotations

import socket
from pathlib import Path

import psutil
import pytest
from processes import launcher_of, strays, wait_for_ranks

from ddp_lesson import torchrun
from ddp_lesson.launch.client import pool

STAY = Path(__file__).parent / "scripts" / "stay.py"
LOCAL = {"127.0.0.1", "::1"}


def listening(process: psutil.Process) -> set[str]:
    return {c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}


def free_port() -> str:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return str(sock.getsockname()[1])


@pytest.mark.parametrize(
    "options, cold",
    [
        ([], False),
        (["--standalone"], False),
        (["--master-port", "PORT"], False),
        (["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:PORT", "--max-restarts", "1"], False),
        ([], True),
    ],
    ids=["plain", "standalone", "static", "c10d", "cold"],
)
def test_all_sockets_that_listen_are_local(background, home, options, cold):
    port = free_port()
    options = [option.replace("PORT", port) for option in options]
    running = background(STAY, "ddp", nproc_per_node=2, timeout=100, options=options, cold=cold)
    folder, rows = wait_for_ranks(home)
    launcher = launcher_of(folder)
    found = {process.pid: listening(process) for process in strays()}
    launcher.terminate()
    run = running.result(30)
    assert run.warm != cold
    assert found.keys() >= {launcher.pid, rows[0]["pid"], rows[1]["pid"]}
    assert found[launcher.pid] and found[rows[0]["pid"]]
    assert set().union(*found.values()) <= LOCAL, found
    if "--master-port" in options:
        assert rows[0]["port"] == int(port)
    assert not any(listening(psutil.Process(agent.process.pid)) for agent in pool.agents)


def test_a_port_that_is_taken_is_named(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        run = torchrun(STAY, nproc_per_node=2, timeout=60, options=["--master-port", port])
    assert not run.ok and not run.timed_out
    assert "EADDRINUSE" in run.failure.exception and port in run.failure.exception
    assert run.failure.cause == "port_in_use"
