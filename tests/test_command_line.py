"""``python -m ddp_lesson``: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_dirs

from ddp_lesson import Run

EACH = "import os, sys\nprint('rank', os.environ['RANK'], sys.argv[1:])\nprint('to stderr', file=sys.stderr)\n"
FAILS = EACH + "if os.environ['RANK'] == '1':\n    raise ValueError('on purpose')\nimport time; time.sleep(60)\n"


def ddp_lesson(*words: str, timeout: float = 60) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "ddp_lesson", *words], capture_output=True, text=True, timeout=timeout)


def test_a_run_is_printed_line_by_line_with_its_rank(home):
    (home / "each.py").write_text(EACH)
    done = ddp_lesson("run", "--nproc-per-node", "2", "each.py", "--epochs", "2")
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"[rank {r}] rank {r} ['--epochs', '2']" for r in (0, 1)]
    first, *middle, last = done.stderr.splitlines()
    assert first == "$ torchrun --nproc-per-node 2 each.py --epochs 2"
    assert sorted(middle) == ["[rank 0] to stderr", "[rank 1] to stderr"]
    assert last.startswith("finished after ") and "exit codes by rank: 0, 0; all of it in " in last
    assert last.endswith(str(run_dirs(home)[0]))


def test_a_failed_run_as_json(home):
    (home / "fails.py").write_text(FAILS)
    done = ddp_lesson("run", "--json", "--nproc-per-node", "2", "--cold", "fails.py")
    assert done.returncode == 1 and done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["ok"], found["returncode"], found["warm"]) == (False, 1, False)
    assert found["failure"]["rank"] == 1
    assert found["failure"]["exception"] == "ValueError: on purpose"
    assert found["failure"]["timed_out"] is False
    assert [rank["exitcode"] for rank in found["ranks"]] == [-15, 1]
    assert found["ranks"][0]["stdout"] == "rank 0 []\n"
    assert Run.load(found["path"]).wall_s == found["wall_s"]


def test_a_failed_run_names_its_rank(home):
    (home / "fails.py").write_text(FAILS)
    done = ddp_lesson("run", "--nproc-per-node", "2", "--cold", "--expect-failure", "fails.py")
    assert done.returncode == 0  # it failed, as expected
    assert "It began on rank 1: ValueError: on purpose\n" in done.stderr
    assert "failed after " in done.stderr and "Traceback" in done.stderr  # the rank's own
    assert "launch/" not in done.stderr


BAD = {
    "run": "Which script?",
    "run absent.py": "absent.py: there is no such script",
    "run --nproc-per-node 0 x.py": "a run needs at least 1 rank",
    "run --nonsense x.py": "--nonsense is no option",
    "run --timeout soon x.py": "a number of seconds above 0",
    "nonsense": "There is no command nonsense",
    "preflight --nonsense": "usage: ",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_usage_is_one_line_and_exit_code_2(home, line):
    done = ddp_lesson(*line.split())
    assert done.returncode == 2 and done.stdout == ""
    assert BAD[line] in done.stderr and done.stderr.count("\n") == 1
    assert not list(Path(home).iterdir())


def test_help_is_help(home):
    for words in ([], ["--help"], ["run", "--help"]):
        done = ddp_lesson(*words)
        assert done.stdout.startswith("usage: python -m ddp_lesson") and done.stderr == ""
        assert done.returncode == (0 if words else 2)


def test_preflight_is_json_on_request(home):
    done = ddp_lesson("preflight", "--json")
    rows = json.loads(done.stdout)
    assert {"what", "found", "state", "advice"} == set().union(*rows)
    assert {row["state"] for row in rows} <= {"ok", "note", "problem"}
    assert {"Python", "torch", "GPUs", "CPU cores", "memory", "left-over ranks"} <= {row["what"] for row in rows}
    assert done.returncode == any(row["state"] == "problem" for row in rows)
    assert done.stderr == ""


def test_a_reader_that_goes_away_ends_the_run_without_a_word(home):
    (home / "talks.py").write_text("import time\nfor i in range(600):\n    print(i)\n    time.sleep(0.1)\n")
    line = f"{sys.executable} -m ddp_lesson run --cold --nproc-per-node 2 talks.py | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[rank 0] 0\n"
    assert "Traceback" not in done.stderr


def test_only_a_newline_ends_a_printed_line_and_a_redrawn_bar_shows_its_last_state(tmp_path, capsys):
    from ddp_lesson.launch.follow import Printer
    from ddp_lesson.launch.run import Run

    folder = tmp_path / "logs" / "id" / "attempt_0" / "0"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_bytes("one\u2028line\x0cstill\x85x\n\r0/2\r1/2\r2/2\n".encode())
    printer = Printer()
    printer(Run(tmp_path, {"command": "torchrun a.py"}))
    assert capsys.readouterr().out == "[rank 0] one\u2028line\x0cstill\x85x\n[rank 0] 2/2\n"
