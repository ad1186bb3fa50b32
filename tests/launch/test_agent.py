"""The agent is small, does not stay for nothing, comes back by itself, and is not needed for a launch."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from processes import alive, assert_none_left, wait_for

from ddp_lesson import torchrun
from ddp_lesson.launch.client import IDLE_S, MOST_IDLE, Agent, AgentError, Pool, at_load, pool
from ddp_lesson.launch.plan import default_agent_env

TRAIN = Path(__file__).parent / "scripts" / "train.py"
MOST_BYTES = 350 * 2**20


def test_it_costs_at_most_350_mb(home):
    assert torchrun(TRAIN, nproc_per_node=2, timeout=60).ok
    agent = max(pool.agents, key=lambda agent: agent.used)
    assert 0 < agent.rss <= MOST_BYTES
    used = psutil.Process(agent.process.pid).memory_info().rss
    assert used <= MOST_BYTES
    print(f"agent: {agent.rss / 2**20:.0f} MiB when ready, {used / 2**20:.0f} MiB after runs")


def test_it_ends_after_its_idle_time_but_not_during_a_run_and_comes_back_by_itself(home):
    assert IDLE_S == 15 * 60
    (home / "slow.py").write_text("import time\ntime.sleep(1.2)\n")
    impatient = Agent("warm", default_agent_env(), idle_s=0.5)
    impatient.ready(60)
    pool.agents.insert(0, impatient)
    run = torchrun("slow.py", nproc_per_node=2, timeout=60)
    assert run.ok and impatient.used > run.info["t0_ns"] / 1e9
    wait_for(lambda: not alive(impatient.process.pid), 10, "its end")
    run = torchrun(TRAIN, nproc_per_node=2, timeout=60)
    assert run.ok and run.warm and not run.notes
    assert impatient not in pool.agents and impatient.process.returncode == 0


def test_only_two_environments_are_kept_warm():
    mine = Pool()
    agents = [mine.start({**os.environ, "TZ": zone}) for zone in ("UTC", "CET", "EET")]
    assert mine.agents == agents[-MOST_IDLE:]
    assert not agents[0].alive
    assert mine.start({**os.environ, "TZ": "CET", "ELSE": "1"}) is agents[1]
    mine.close()
    assert_none_left([agent.process.pid for agent in agents])


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "LOGLEVEL"])
def test_a_variable_that_is_read_at_load_time_makes_another_environment(name):
    assert at_load({name: "1"}) != at_load({name: "2"}) != at_load({})
    assert at_load({"MY_" + name: "1"}) == at_load({})


def test_where_it_cannot_start_the_launch_is_cold_and_says_so(home):
    (home / "broken" / "torch").mkdir(parents=True)
    (home / "broken" / "torch" / "__init__.py").write_text("raise ImportError('this build is broken')\n")
    (home / "x.py").write_text("")
    run = torchrun("x.py", nproc_per_node=2, timeout=60, env={"PYTHONPATH": str(home / "broken")})
    assert not run.ok and not run.warm
    assert run.notes == [
        "Launched cold, since the agent ended (exit code 1) saying: ImportError: this build is broken."
    ]
    assert run.failure.exception == "ImportError: this build is broken"


def test_an_agent_that_dies_says_how():
    agent = Agent("warm", dict(os.environ))
    agent.process.kill()
    with pytest.raises(AgentError, match=r"exit code -9\) without a word"):
        agent.ready(60)
    agent.close()
