"""Two hundred runs in a row, and many at once: none hangs, none mixes with another, nothing grows."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from processes import run_dirs

from ddp_lesson import Run, torchrun
from ddp_lesson.launch.client import MOST_IDLE, pool

SCRIPTS = Path(__file__).parent / "scripts"
TRAIN = SCRIPTS / "train.py"


def size(agent: psutil.Process) -> tuple[int, int]:
    return agent.memory_info().rss, agent.num_fds()


@pytest.mark.timeout(400)
def test_two_hundred_runs_in_a_row_of_which_a_quarter_fail_on_a_random_rank(home):
    chance = random.Random(7)
    failing = chance.sample(range(200), 50)
    ours = psutil.Process()
    for number in range(200):
        rank = str(chance.randrange(2)) if number in failing else "none"
        run = torchrun(TRAIN, rank, f"fault {number}", nproc_per_node=2, timeout=60)
        assert run.warm and not run.timed_out and not run.notes, (number, run.notes)
        assert run.ok == (number not in failing), (number, run.failure)
        if run.ok:
            assert [r.stdout for r in run.ranks] == ["rank 0 of 2\n", "rank 1 of 2\n"]
        else:
            assert run.failure.rank == int(rank), number
            assert run.failure.exception == f"ValueError: fault {number}"
            assert run.ranks[int(rank)].exitcode == 1
        if number == 20:
            agent = psutil.Process(max(pool.agents, key=lambda agent: agent.used).process.pid)
            before, descriptors = size(agent), ours.num_fds()
    after = size(agent)
    assert after[0] < before[0] + 2 * 2**20
    assert after[1] == before[1]
    assert ours.num_fds() <= descriptors
    assert not agent.children()
    assert len(run_dirs(home)) == 50


def test_threads_that_launch_at_once_get_runs_of_their_own(background, home):
    names = [f"number{n % 2}.py" for n in range(4)]
    for name in set(names):
        (home / name).write_text(TRAIN.read_text() + f"print({name!r}, sys.argv[1:], os.environ['MASTER_PORT'])\n")
    runs = [background(name, "none", str(n), nproc_per_node=2, timeout=100) for n, name in enumerate(names)]
    runs = [run.result(110) for run in runs]
    assert all(run.ok for run in runs), [run.failure for run in runs]
    assert len({run.path for run in runs}) == len({run.info["number"] for run in runs}) == 4
    for n, (run, name) in enumerate(zip(runs, names, strict=True)):
        said = [rank.stdout.splitlines()[1].rpartition(" ") for rank in run.ranks]
        assert [line[0] for line in said] == [f"{name} ['none', '{n}']"] * 2
        assert said[0][2] == said[1][2]
    assert len(pool.agents) <= MOST_IDLE


# A kernel in a few words: writes the same script with a text of its own and launches it, again and again.
NOTEBOOK = """
import json, os, sys
from ddp_lesson.launch import api, options, scripts
me, found = sys.argv[1], []
for number in range(10):
    text = f"import os\\nprint({me!r}, {number}, os.environ['MASTER_PORT'])\\n"
    path, kept = scripts.write("same.py", text)
    run = api.launch(options.parse(["--timeout", "60", os.path.relpath(path)]), text=text.encode())
    words = [rank.stdout.split() for rank in run.ranks]
    found.append([run.ok, words, run.path.name, kept and kept.name])
print(json.dumps(found))
"""


def test_two_notebooks_that_write_the_same_script_do_not_disturb_each_other(home):
    both = [
        subprocess.Popen([sys.executable, "-c", NOTEBOOK, me], stdout=subprocess.PIPE, text=True)
        for me in ("first", "second")
    ]
    found = [json.loads(process.communicate(timeout=100)[0]) for process in both]
    folders = set()
    for me, rows in zip(("first", "second"), found, strict=True):
        for number, (ok, words, folder, kept) in enumerate(rows):
            folders.add(folder)
            assert ok and kept is None
            assert words[0] == words[1] and words[0][:2] == [me, str(number)]
    assert len(folders) == 20


def test_two_launches_may_be_two_nodes_of_one_run(background, home):
    (home / "nodes.py").write_text(
        "import os, torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "x = torch.ones(1)\ndist.all_reduce(x)\nprint(os.environ['RANK'], os.environ['LOCAL_RANK'], int(x))\n"
        "dist.destroy_process_group()\nraise ValueError('on node ' + os.environ['GROUP_RANK'])\n"
    )
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    nodes = ["--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(port), "--node-rank"]
    local = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    runs = [background("nodes.py", nproc_per_node=2, env=local, options=[*nodes, str(node)]) for node in (0, 1)]
    first, second = (run.result(90) for run in runs)
    assert [rank.rank for rank in first.ranks] == [0, 1]
    assert [rank.rank for rank in second.ranks] == [2, 3]
    assert [rank.stdout for rank in second.ranks] == ["2 0 4\n", "3 1 4\n"]
    assert first.failure.rank in (0, 1) and first.failure.exception == "ValueError: on node 0"
    assert second.failure.rank in (2, 3) and second.failure.exception == "ValueError: on node 1"
    assert Run.load(second.path).failure == second.failure
