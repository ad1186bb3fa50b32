"""A warm rank cannot be told from a cold one: what it finds when it starts, what it does, how it ends."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import processes
import psutil
import pytest

from ddp_lesson import Run, torchrun

SCRIPTS = Path(__file__).parent / "scripts"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # what torchrun sets for more than one rank: the same agent serves one rank, too

# Names and places of a single run.
ITS_OWN = {
    "DDP_LESSON_AGENT",
    "DDP_LESSON_RUN_DIR",
    "DDP_LESSON_T0_NS",
    "MASTER_PORT",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_RUN_ID",
}


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDP_LESSON_HOME", str(folder))
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.chdir(folder)
        yield folder
    processes.assert_none_left()


@pytest.fixture(scope="module")
def probes(module_home: Path) -> dict[tuple[int, bool], list[dict[str, Any]]]:
    """What each rank of the probe says, by number of ranks and whether the launch was warm."""
    found = {}
    for ranks in (2, 1):
        for cold in (False, True):
            run = torchrun(SCRIPTS / "probe.py", "one", "--two=3 4", nproc_per_node=ranks, cold=cold, timeout=100)
            assert run.ok and run.warm != cold and not run.notes, run.ranks[0].stderr
            assert [rank.stderr for rank in run.ranks] == [""] * ranks
            found[ranks, not cold] = [json.loads(rank.stdout) for rank in run.ranks]
    return found


@pytest.mark.parametrize("ranks", [2, 1])
def test_a_warm_rank_finds_what_a_cold_one_finds(probes, ranks):
    for warm, cold in zip(*(map(dict, probes[ranks, way]) for way in (True, False)), strict=True):
        assert warm["env"].keys() == cold["env"].keys()
        assert warm["env"].keys() >= ITS_OWN
        for row in (warm, cold):
            row["env"] = {name: value for name, value in row["env"].items() if name not in ITS_OWN}
            row["random"] = None
            row["import"] = [re.sub(" at 0x.*", "", finder) for finder in row["import"]]
            # sympy is imported beforehand and adds a rule for its own warnings.
            row["warnings"] = [line for line in row["warnings"] if "sympy" not in line]
        for name in warm:
            assert warm[name] == cold[name], name


def test_the_probe_sees_what_torchrun_promises(probes):
    for (ranks, _), rows in probes.items():
        for rank, row in enumerate(rows):
            assert row["argv"] == [str(SCRIPTS / "probe.py"), "one", "--two=3 4"]
            assert row["orig_argv"] == [sys.executable, "-u", *row["argv"]]
            assert row["env"]["RANK"] == row["env"]["LOCAL_RANK"] == str(rank)
            assert row["env"]["WORLD_SIZE"] == str(ranks)
            assert row["path"][0] == str(SCRIPTS)
            assert row["leads_session"] and row["main_is_this"]
            assert row["open_files"] == [0, 1, 2]
            assert row["threads"][0] == (1 if ranks > 1 else psutil.cpu_count(logical=False) or 1)
            assert not row["cuda_is_initialized"]


def test_random_streams_differ_between_ranks_and_between_runs(probes):
    drawn = [row["random"] for rows in probes.values() for row in rows]
    again = torchrun(SCRIPTS / "probe.py", nproc_per_node=2, timeout=60)
    drawn += [json.loads(rank.stdout)["random"] for rank in again.ranks]
    for stream in zip(*drawn, strict=True):  # Python's, numpy's, torch's, and torch's seed
        assert len(set(stream)) == len(drawn)


def test_variables_that_are_read_at_load_time_are_in_force(module_home):
    (module_home / "threads.py").write_text(
        "import os, torch\n"
        "born = open('/proc/self/environ').read().split('\\0')\n"
        "print(torch.get_num_threads(), os.environ['LD_BIND_NOW'], 'LD_BIND_NOW=1' in born, 'GONE' in os.environ)\n"
    )
    changes = {"OMP_NUM_THREADS": "2", "LD_BIND_NOW": "1", "GONE": None}
    run = torchrun("threads.py", nproc_per_node=2, env=changes, timeout=60)
    assert run.warm
    assert [rank.stdout for rank in run.ranks] == ["2 1 True False\n"] * 2
    assert run.command.startswith("env -u GONE OMP_NUM_THREADS=2 LD_BIND_NOW=1 ")


# A script's ways to end. Each is compared with the same file under `python -u`, which is how torchrun starts a rank.
ENDS = {
    "raises": "def f():\n    raise ValueError('here')\nf()",
    "raises from another": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e",
    "raises a group": "raise ExceptionGroup('two', [ValueError('a'), TypeError('b')])",
    "exits with a code": "import sys\nsys.exit(3)",
    "exits with a negative code": "import sys\nsys.exit(-1)",
    "exits with a text": "import sys\nsys.exit('that was all')",
    "exits with nothing": "raise SystemExit(None)",
    "exits at once": "import os\nprint('x')\nos._exit(9)",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "gets SIGINT": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "gets SIGTERM": "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(9)",
    "gets SIGKILL": "import os, signal, time\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(9)",
    "gets SIGSEGV": "import os, signal, time\nos.kill(os.getpid(), signal.SIGSEGV)\ntime.sleep(9)",
    "aborts": "import os\nos.abort()",
    "writes to a closed pipe": "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')",
    "is no Python": "x = 1\nif x\n    pass",
    "has its own hook": "import sys\nsys.excepthook = lambda t, e, tb: print(t.__name__, e, tb.tb_lineno)\n1 / 0",
    "has a hook that exits": "import sys\nsys.excepthook = lambda *_: sys.exit(7)\n1 / 0",
    "has a hook that fails": "import sys\ndef hook(*_):\n    raise TypeError('hook')\nsys.excepthook = hook\n1 / 0",
    "has an exit handler": "import atexit, sys\natexit.register(lambda: print(repr(sys.last_value)))\n1 / 0",
    "has a thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('t'))).start()",
    "has a thread that fails": "import threading\nthreading.Thread(target=int, args='x').start()",
    "has a thread for ever": "from threading import *\nThread(target=Event().wait, daemon=True).start()",
    "has a pool of threads": "from concurrent.futures import *\nThreadPoolExecutor().submit(print, 'late')",
    "forks": "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('parent' if pid else 'child')",
    "forks a child that exits": "import os, sys\nif os.fork() == 0:\n    sys.exit(4)\nprint(os.wait()[1])",
    "has a child": "import multiprocessing as m\nm.get_context('fork').Process(target=print, args=['c']).start()",
    "reads its input": "print(input())",
    "closes its output": "import sys\nprint('x')\nsys.stdout.close()",
    "leaves a weak proxy": "import weakref\nclass A: pass\nproxy = weakref.proxy(A())",
    "leaves an open file": "f = open('left', 'w')\nf.write('written')",
    "logs": "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('said')",
    "warns": "import warnings\nwarnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)",
    "looks at itself": "import inspect\ndef f(): pass\nprint(inspect.getsource(f), __file__, f.__module__)",
    "is in Latin-1": "# coding: latin-1\nprint(ascii('é'))".encode("latin-1"),
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS.keys())
def test_a_warm_rank_ends_as_a_process_of_its_own_does(home, text):
    script = home / "script.py"
    script.write_bytes(text if isinstance(text, bytes) else text.encode() + b"\n")
    left = home / "left"
    alone = subprocess.run(
        [sys.executable, "-u", "script.py"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    files = [left.read_text()] if left.exists() else []
    left.unlink(missing_ok=True)
    run = torchrun("script.py", nproc_per_node=1, env=ONE_THREAD, timeout=60)
    (rank,) = run.ranks
    assert run.warm
    assert rank.exitcode == alone.returncode
    assert rank.stdout == alone.stdout
    assert rank.stderr == alone.stderr
    assert ([left.read_text()] if left.exists() else []) == files
    assert run.ok == (alone.returncode == 0)
    assert (run.failure is None) == run.ok
    if not run.ok:
        last = alone.stderr.strip().splitlines()[-1:] or [""]
        assert run.failure.rank == 0
        assert last[0] in run.failure.exception or "Group" in run.failure.exception


def test_exit_handlers_all_run_also_after_one_that_fails(home):
    (home / "script.py").write_text(
        "import atexit, sys\natexit.register(print, 'last')\natexit.register(sys.exit, 5)\natexit.register(int, 'x')\n"
    )
    alone = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=60)
    run = torchrun("script.py", nproc_per_node=1, env=ONE_THREAD, timeout=60)
    assert run.ranks[0].exitcode == alone.returncode == 0
    assert run.ranks[0].stdout == alone.stdout == "last\n"
    for error in ("ValueError: invalid literal", "SystemExit: 5"):
        assert error in run.ranks[0].stderr and error in alone.stderr


def test_a_compressed_file_that_was_left_open_is_whole(home):
    (home / "script.py").write_text("import gzip\nf = gzip.open('left.gz', 'wt')\nf.write('hello' * 1000)\n")
    assert torchrun("script.py", nproc_per_node=1, env=ONE_THREAD, timeout=60).ok
    assert gzip.open("left.gz", "rt").read() == "hello" * 1000


WORDS = {
    "import sys; sys.exit(3)": "The script ended with exit code 3.",
    "import os; os.kill(os.getpid(), 9)": "The process was ended by SIGKILL.",
    "import os; os.kill(os.getpid(), 11)": "The process was ended by SIGSEGV.",
    "import os; os.kill(os.getpid(), 15)": "The process was ended by SIGTERM.",
    "import os; os.abort()": "The process was ended by SIGABRT.",
    "raise KeyError('k')": "KeyError: 'k'",
}


@pytest.mark.parametrize("end", WORDS)
def test_the_rank_that_ended_is_named_while_the_other_waits_for_it(home, end):
    (home / "script.py").write_text(
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\ndist.barrier()\n"
        f"if dist.get_rank() == 1:\n    {end}\ndist.all_reduce(torch.ones(1))\n"
    )
    run = torchrun("script.py", nproc_per_node=2, timeout=60)
    assert not run.ok and run.returncode == 1
    assert (run.failure.rank, run.failure.exception) == (1, WORDS[end])
    assert not run.failure.timed_out


def test_error_files_and_the_failure_are_the_same(module_home):
    runs = [torchrun(SCRIPTS / "recorded.py", nproc_per_node=2, cold=cold, timeout=100) for cold in (False, True)]
    files = []
    for run in runs:
        assert run.ranks[0].error is None and run.ranks[0].exitcode == -15
        error = run.ranks[1].error
        trace = re.sub(r"\S*/", "", error["message"]["extraInfo"].pop("py_callstack"))
        assert error["message"]["extraInfo"].pop("timestamp")
        files.append((run.ranks[1].exitcode, error, trace, re.sub(r"\S*/", "", run.ranks[1].stderr)))
    assert files[0] == files[1]
    assert runs[0].failure == runs[1].failure
    assert runs[0].failure.rank == 1 and runs[0].failure.exception == "ValueError: wrong on rank 1"


def test_ranks_start_processes_and_read_modules_beside_them_anew(home):
    script = home / "workers.py"
    script.write_text((SCRIPTS / "workers.py").read_text())
    (home / "beside.py").write_text("NAME = 'first'\n")
    squares = [index**2 for index in range(8)]
    run = torchrun("workers.py", nproc_per_node=1, env=ONE_THREAD, timeout=100)
    assert run.ok and not run.notes, (run.notes, run.ranks[0].stderr)
    assert run.ranks[0].stdout.splitlines() == [
        f"fork {squares}",
        f"spawn {squares}",
        "child 42",
        "module first exit code 0 workers.py",
    ]
    (home / "beside.py").write_text("NAME = 'second, longer'\n")
    (home / "script.py").write_text("import beside\nprint(beside.NAME)\n")
    assert torchrun("script.py", nproc_per_node=2, timeout=60).ranks[1].stdout == "second, longer\n"


def test_the_copy_in_the_run_directory_is_what_ran(home):
    (home / "script.py").write_text("print('as it was')\n")
    run = torchrun("script.py", nproc_per_node=2, timeout=60)
    (home / "script.py").write_text("print('as it is')\n")
    assert (run.path / "script.py").read_text() == "print('as it was')\n"
    loaded = Run.load(run.path)
    assert loaded.ok and [rank.stdout for rank in loaded.ranks] == ["as it was\n"] * 2
