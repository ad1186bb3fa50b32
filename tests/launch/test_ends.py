"""Whatever ends a run, nothing of it is left: no process within six seconds, no port, nothing in the next run's way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from processes import (
    GONE_S,
    assert_none_left,
    assert_port_is_free,
    launcher_of,
    pids_of,
    run_dirs,
    strays,
    wait_for,
    wait_for_ranks,
)

from ddp_lesson import Run, torchrun
from ddp_lesson.launch.client import pool
from ddp_lesson.launch.tree import MARK

SCRIPTS = Path(__file__).parent / "scripts"
STAY = SCRIPTS / "stay.py"
BOTH = pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])


def assert_all_is_well(rows: dict, seconds: float = GONE_S) -> None:
    assert_none_left(pids_of(rows), seconds)
    assert_port_is_free(rows[0]["port"])
    again = torchrun(SCRIPTS / "train.py", nproc_per_node=2, timeout=60)
    assert again.ok, again.failure


def test_deadline_ends_ranks_that_ignore_signals_or_have_stopped_and_their_children_elsewhere(background, home):
    running = background(STAY, "stubborn", "family", "ddp", "stops", nproc_per_node=2, timeout=3)
    _, rows = wait_for_ranks(home)
    run = running.result(30)
    assert_all_is_well(rows, seconds=1)
    assert run.timed_out and not run.ok and not run.stopped
    assert run.wall_s < run.info["timeout"] + GONE_S
    assert run.failure.timed_out and run.failure.rank is None
    assert [rank.exitcode for rank in run.ranks] == [-signal.SIGKILL] * 2
    assert "ranks 0, 1" in run.failure.advice


@BOTH
def test_the_death_of_torchrun_ends_its_ranks(background, home, cold):
    running = background(STAY, *["family"] * (not cold), nproc_per_node=2, cold=cold)
    folder, rows = wait_for_ranks(home)
    launcher_of(folder).kill()
    run = running.result(GONE_S)
    assert_all_is_well(rows, seconds=1)
    assert run.returncode == -signal.SIGKILL and not run.ok
    assert any("torchrun itself was ended by SIGKILL" in note for note in run.notes)
    assert run.failure.rank is None
    if not cold:
        assert [rank.exitcode for rank in run.ranks] == [-signal.SIGTERM] * 2


def test_the_death_of_torchrun_before_it_has_heard_of_its_ranks_end(background, home):
    running = background(STAY, nproc_per_node=2)
    folder, rows = wait_for_ranks(home)
    launcher = launcher_of(folder)
    launcher.suspend()
    psutil.Process(rows[1]["pid"]).kill()
    wait_for(lambda: (folder / "exits.jsonl").read_text().strip(), 10, "the agent's note of the end")
    launcher.kill()
    run = running.result(GONE_S)
    assert_all_is_well(rows, seconds=1)
    assert run.returncode == -signal.SIGKILL
    assert [rank.exitcode for rank in run.ranks] == [-signal.SIGTERM, -signal.SIGKILL]


@BOTH
def test_the_death_of_the_agent_ends_the_run(background, home, cold):
    running = background(STAY, nproc_per_node=2, cold=cold)
    folder, rows = wait_for_ranks(home)
    launcher_of(folder).parent().kill()
    run = running.result(2 * GONE_S)
    assert_all_is_well(rows)
    assert run.returncode is None and not run.ok
    assert any("agent" in note and "lost" in note for note in run.notes)
    assert Run.load(run.path).notes == run.notes


def test_children_that_ranks_leave_behind_are_ended_and_mentioned(home):
    (home / "leaves.py").write_text("import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid)\n")
    run = torchrun("leaves.py", nproc_per_node=2, timeout=30)
    assert run.ok
    assert_none_left((int(rank.stdout) for rank in run.ranks), seconds=1)
    assert run.notes == ["Processes that the ranks had started and left behind were ended."]


def test_a_failure_ends_ranks_that_ignore_signals_and_is_still_the_cause(background, home):
    (home / "quits.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "time.sleep(60) if os.environ['RANK'] == '0' else sys.exit(3)\n"
    )
    run = background("quits.py", nproc_per_node=2, timeout=30).result(20)
    assert [rank.exitcode for rank in run.ranks] == [-signal.SIGKILL, 3]
    assert run.failure.rank == 1 and "3" in run.failure.exception


# What Python would do last: write out a file whose pipe nobody reads.
STUCK = "import os\nstuck = os.fdopen(os.pipe()[1], 'wb', 1 << 20)\nstuck.write(bytes(1 << 19))\n"


def test_ranks_that_have_finished_but_do_not_end_are_ended_and_exit_handlers_are_not(background, home):
    (home / "well.py").write_text(f"import os\nif os.environ['RANK'] == '1':\n    {STUCK.replace(chr(10), '; ')}\n")
    (home / "fails.py").write_text(
        f"{STUCK}import time\nif os.environ['RANK'] == '0':\n    raise ValueError('before the end')\ntime.sleep(60)\n"
    )
    (home / "saves.py").write_text(
        "import atexit, pathlib, time\n"
        "atexit.register(lambda: (time.sleep(7), pathlib.Path('saved').write_text('all of it')))\n"
    )
    runs = [background(name, nproc_per_node=2, timeout=50) for name in ("well.py", "fails.py", "saves.py")]
    well, fails, saves = (run.result(40) for run in runs)
    assert well.ok and well.failure is None
    assert [rank.exitcode for rank in well.ranks] == [0, 0]
    assert 3 < well.wall_s < 20
    assert well.notes == ["Rank 1 had finished its script but did not end; it was ended after 5 s."]
    assert fails.ranks[0].exitcode == 1
    assert fails.failure.rank == 0 and fails.failure.exception == "ValueError: before the end"
    assert saves.ok and saves.notes == [] and (home / "saved").read_text() == "all of it"


def command_line(*words: object, **options: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "ddp_lesson", "run", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


@BOTH
def test_ctrl_c_ends_a_run_of_the_command_line(home, cold):
    words = ["stubborn"] * cold + ["family"]
    process = command_line(*["--cold"] * cold, "--nproc-per-node", 2, STAY, *words)
    _, rows = wait_for_ranks(home)
    pressed = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - pressed < GONE_S
    assert_all_is_well(rows, seconds=1)
    assert process.returncode == 1
    assert "Traceback" not in err and "stopped after" in err
    assert out.count("[rank ") == 2
    run = Run.load(run_dirs(home)[0])
    assert run.stopped and run.warm != cold
    assert [rank.exitcode for rank in run.ranks] == [-signal.SIGKILL if cold else -signal.SIGTERM] * 2


def test_ctrl_c_pressed_many_times_ends_the_run_without_a_traceback(home):
    process = command_line("--nproc-per-node", 2, STAY, "stubborn")
    _, rows = wait_for_ranks(home)
    for _ in range(5):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    _, err = process.communicate(timeout=20)
    assert_all_is_well(rows, seconds=1)
    assert process.returncode == 1
    assert "Traceback" not in err and "stopped after" in err, err


def test_ctrl_c_while_torch_is_still_being_imported(home):
    process = command_line("--nproc-per-node", 2, STAY)
    wait_for(lambda: psutil.Process(process.pid).children(), 20, "the agent")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert_none_left()
    assert process.returncode == 1
    assert "Traceback" not in err, err


def test_the_end_of_its_owner_ends_an_agent_that_is_still_importing(home):
    start = "from ddp_lesson.launch import client, plan; client.pool.start(plan.default_agent_env()); input()"
    owner = subprocess.Popen([sys.executable, "-c", start], stdin=subprocess.PIPE)
    (agent,) = wait_for(lambda: psutil.Process(owner.pid).children(), 20, "the agent")
    owner.kill()
    owner.wait(10)
    owner.stdin.close()
    assert agent.environ()[MARK]
    assert_none_left([agent.pid], seconds=20)


def test_an_idle_agent_that_is_killed_is_replaced(home):
    assert torchrun(SCRIPTS / "train.py", nproc_per_node=2, timeout=60).ok
    for agent in pool.agents:
        agent.process.kill()
        agent.process.wait(10)
    run = torchrun(SCRIPTS / "train.py", nproc_per_node=2, timeout=60)
    assert run.ok and run.warm and not run.notes
    assert not strays()
