"""The rank that a run began to fail on, from texts as torch writes them; tests/launch has the real crashes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ddp_lesson.doctor import echoes, failure_of
from ddp_lesson.doctor.catalogue import CATALOGUE, match
from ddp_lesson.doctor.failure import last_exception
from ddp_lesson.launch.run import Run

RAISED = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nValueError: planted\n'
CLOSED = (
    '[rank0]: Traceback (most recent call last):\n[rank0]:   File "a.py", line 9, in <module>\n'
    "[rank0]: RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:22939\n"
)
LATE = (
    'Traceback (most recent call last):\n  File "a.py", line 9, in <module>\n'
    "RuntimeError: Timed out waiting 6000ms for recv operation to complete\n"
)


def finished(path: Path, ranks: list[tuple[int, str]], **info) -> Run:
    """A run directory with (exit code, stderr) per rank, written in the order of the ranks' ends."""
    lines = []
    for rank, (code, stderr) in enumerate(ranks):
        folder = path / "logs" / "id" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(stderr)
        os.utime(folder / "stderr.log", (rank, rank))
        lines.append(json.dumps({"rank": rank, "exitcode": code, "t": float(rank)}))
    (path / "exits.jsonl").write_text("\n".join(lines))
    facts = {"command": "", "script": "a.py", "nproc": len(ranks), "returncode": 1, "warm": True, "timeout": None}
    (path / "run.json").write_text(json.dumps(facts | info))
    return Run.load(path)


@pytest.mark.parametrize(
    "ranks, rank, exception",
    [
        ([(1, CLOSED), (1, RAISED)], 1, "ValueError: planted"),
        ([(-15, ""), (1, RAISED)], 1, "ValueError: planted"),
        ([(1, CLOSED), (-9, "")], 1, "The process was ended by SIGKILL."),
        ([(-15, ""), (3, "")], 1, "The script ended with exit code 3."),
        ([(-15, ""), (2, "usage: a.py\na.py: error: unrecognized arguments: --x\n")], 1, "unrecognized arguments"),
        ([(0, ""), (1, CLOSED)], 0, "Rank 0 had ended"),
        ([(1, RAISED), (1, RAISED)], 0, "ValueError: planted"),
        ([(-6, "terminate called"), (-9, "")], 1, "SIGKILL"),
        ([(1, CLOSED), (-6, "")], 1, "The process was ended by SIGABRT."),
        ([(-15, ""), (1, CLOSED)], 0, "The process was ended by SIGTERM."),
        ([(0, ""), (1, CLOSED), (-6, CLOSED)], 0, "Rank 0 had ended"),
    ],
)
def test_the_cause_beats_what_its_victims_say(tmp_path, ranks, rank, exception):
    failure = failure_of(finished(tmp_path, ranks))
    assert failure.rank == rank
    assert exception in failure.exception


def test_ranks_that_only_suffered_are_echoes(tmp_path):
    run = finished(tmp_path, [(1, CLOSED), (1, RAISED), (-15, ""), (0, "")])
    assert run.failure.rank == 1
    assert echoes(run) == {0, 2}


def test_a_run_that_was_well_has_no_failure_and_no_echo(tmp_path):
    run = finished(tmp_path, [(0, "a warning"), (0, "")], returncode=0)
    assert run.failure is None
    assert echoes(run) == set()


def test_a_deadline_is_said_and_names_who_was_still_running(tmp_path):
    run = finished(tmp_path, [(0, ""), (-15, "")], timed_out=True, timeout=5.0)
    assert run.failure.timed_out
    assert run.failure.rank is None
    assert "ranks 1" in run.failure.advice


def test_a_kill_by_the_deadline_is_not_taken_for_the_system_s(tmp_path):
    run = finished(tmp_path, [(-9, ""), (-9, "")], timed_out=True, timeout=5.0)
    assert run.failure.cause is None


def test_a_timeout_of_a_collective_is_named_when_nothing_better_is_there(tmp_path):
    failure = failure_of(finished(tmp_path, [(1, LATE), (-15, "")]))
    assert failure.cause == "rank_missing_at_barrier"


def test_the_text_of_error_json_counts_where_stderr_is_empty(tmp_path):
    run = finished(tmp_path, [(-15, ""), (1, "")])
    error = {"message": {"message": "KeyError: 'LOCAL_RANK'", "extraInfo": {}}}
    (tmp_path / "logs" / "id" / "attempt_0" / "1" / "error.json").write_text(json.dumps(error))
    assert run.failure.cause == "env_rank_not_set"


@pytest.mark.parametrize(
    "text, last",
    [
        (RAISED, "ValueError: planted"),
        ("", None),
        ("UserWarning: nothing\n", None),
        (RAISED + "\nDuring handling of the above exception, another exception occurred:\n\n" + RAISED.replace(
            "ValueError", "KeyError"), "KeyError: planted"),
        ('  File "a.py", line 1\n    x，y\n     ^\nSyntaxError: invalid character (U+FF0C)\n',
         "SyntaxError: invalid character (U+FF0C)"),
        (RAISED.replace("planted", "two\nlines"), "ValueError: two\nlines"),
    ],
)  # fmt: skip
def test_the_last_exception_of_a_text_is_found(text, last):
    assert last_exception(text) == last


def test_every_entry_of_the_catalogue_has_advice_and_a_step_and_no_slug_twice():
    assert len({entry.slug for entry in CATALOGUE}) == len(CATALOGUE)
    for entry in CATALOGUE:
        assert entry.advice.endswith(".") and 0 <= entry.step <= 7


def test_a_plain_bug_matches_no_entry():
    assert match("ValueError: planted") is None
