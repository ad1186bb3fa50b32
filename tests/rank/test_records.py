import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from enum import IntEnum

import numpy as np
import pytest
import torch

from ddp_lesson.rank import record, records

from .conftest import python, read, recording_env


class Colour(IntEnum):
    RED = 1


RECORDABLE = {
    "none": (None, None),
    "true": (True, True),
    "integer": (-7, -7),
    "large integer": (2**80, 2**80),
    "float": (0.1, 0.1),
    "infinite": (-math.inf, -math.inf),
    "text": ("Zürich\n\u2028\ud800", "Zürich\n\u2028\ud800"),
    "enum": (Colour.RED, 1),
    "numpy float64": (np.float64(0.1), 0.1),
    "numpy float32": (np.float32(0.5), 0.5),
    "numpy long double": (np.longdouble(0.5), 0.5),
    "numpy integer": (np.int64(3), 3),
    "numpy bool": (np.bool_(True), True),
    "numpy text": (np.str_("a"), "a"),
    "array of one": (np.array([[2.5]]), 2.5),
    "array of no dimension": (np.array(2), 2),
    "tensor": (torch.tensor(0.5, requires_grad=True), 0.5),
    "tensor of shape (1, 1)": (torch.tensor([[4]]), 4),
    "bfloat16": (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
    "bool tensor": (torch.tensor(True), True),
    "parameter": (torch.nn.Parameter(torch.ones(1)), 1.0),
    "list": (torch.arange(3).tolist(), [0, 1, 2]),
    "tuple": ((1, "a", None), [1, "a", None]),
    "shape": (torch.ones(2, 3).shape, [2, 3]),
    "list of scalars": ([torch.tensor(1), np.float32(2)], [1, 2.0]),
    "nested": ({"a": [{"b": (torch.tensor(1.5),)}], 2: []}, {"a": [{"b": [1.5]}], "2": []}),
}


@pytest.mark.parametrize(("value", "expected"), RECORDABLE.values(), ids=RECORDABLE)
def test_value_comes_back(run_dir, value, expected):
    record(x=value)
    (row,) = read(run_dir)
    assert row["x"] == expected and type(row["x"]) is type(expected)


def test_nan_comes_back(run_dir):
    record(x=torch.tensor(math.nan))
    assert math.isnan(read(run_dir)[0]["x"])


def test_a_record_carries_rank_time_name_and_kind(run_dir):
    record(loss=0.1, step=3)
    record(name="epoch", epoch=1)
    record()
    assert [{k: v for k, v in row.items() if k != "t"} for row in read(run_dir)] == [
        {"rank": 3, "name": "record", "kind": "record", "loss": 0.1, "step": 3},
        {"rank": 3, "name": "epoch", "kind": "record", "epoch": 1},
        {"rank": 3, "name": "record", "kind": "record"},
    ]
    assert 0 <= read(run_dir)[0]["t"] < 5
    assert [file.name for file in (run_dir / "records").iterdir()] == ["3.jsonl"]


circle = []
circle.append(circle)
REFUSED = {
    "tensor": (torch.ones(3), "x is a tensor of shape (3,): pass x.tolist() or one number"),
    "empty tensor": (torch.ones(0, 2), "x is a tensor of shape (0, 2): pass x.tolist() or one number"),
    "array": (np.ones((2, 2)), "x is an array of shape (2, 2): pass x.tolist() or one number"),
    "tensor in a list": ([0, torch.ones(2)], "x[1] is a tensor of shape (2,): pass x[1].tolist() or one number"),
    "tensor in a dict": ({"a": torch.ones(2)}, "x['a'] is a tensor of shape (2,): pass x['a'].tolist() or one number"),
    "meta": (torch.ones(1, device="meta"), "x is a tensor on the meta device, which holds no numbers: pass a number"),
    "method": (torch.ones(1).item, "x is a function: call it and pass the number it returns"),
    "set": ({1}, "x is a set: pass a number, a string, None, or a list or dict of them"),
    "complex": (1j, "x is a complex: pass a number, a string, None, or a list or dict of them"),
    "complex tensor": (torch.tensor(1j), "x is a complex: pass a number, a string, None, or a list or dict of them"),
    "bytes": (b"a", "x is a bytes: pass a number, a string, None, or a list or dict of them"),
    "model": (torch.nn.Linear(1, 1), "x is a Linear: pass a number, a string, None, or a list or dict of them"),
    "key": ({(1, 2): 3}, "x has a tuple as a key: pass strings as keys"),
    "circle": (circle, "x is nested too deeply or contains itself: pass a flat list"),
}


@pytest.mark.parametrize(("value", "sentence"), REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_in_one_sentence_and_leaves_no_line(run_dir, value, sentence):
    with pytest.raises(TypeError) as caught:
        record(step=1, x=value)
    assert str(caught.value) == sentence
    assert read(run_dir) == []


def test_keys_that_record_sets_are_refused(run_dir):
    for key in ("rank", "t", "kind"):
        with pytest.raises(ValueError) as caught:
            record(**{key: 1})
        assert str(caught.value) == f"{key} is a key that record sets itself: choose another name for yours"
    with pytest.raises(TypeError, match=r"^name is an int: pass a string$"):
        record(name=1)
    assert read(run_dir) == []


def test_without_a_run_directory_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record(loss=0.1)
    assert os.listdir(tmp_path) == []


def test_importing_does_not_import_torch_or_numpy():
    code = "import sys, ddp_lesson.rank; print(sorted({'torch', 'numpy', 'psutil', 'IPython'} & set(sys.modules)))"
    assert python("-c", code).stdout == "[]\n"


def test_threads_do_not_mix_their_lines(run_dir):
    def work(i):
        for k in range(100):
            record(thread=i, k=k, samples=list(range(500)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = read(run_dir)
    assert sorted((row["thread"], row["k"]) for row in rows) == [(i, k) for i in range(4) for k in range(100)]


def test_a_process_killed_while_it_writes_leaves_readable_records_also_of_its_successor(tmp_path):
    code = "from ddp_lesson.rank import record\nwhile True: record(samples=list(range(20000)))"
    process = subprocess.Popen([sys.executable, "-c", code], env=recording_env(tmp_path))
    file = tmp_path / "records" / "0.jsonl"
    deadline = time.monotonic() + 20
    while not (file.exists() and file.stat().st_size > 500_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with file.open("ab") as torn:
        torn.write(b'{"rank":0,"t":1.0,"na')
    written = file.read_bytes().count(b"\n")
    assert python("-c", "from ddp_lesson.rank import record; record(last=True)", run_dir=tmp_path).returncode == 0
    rows = read(tmp_path)
    assert [row["samples"][-1] for row in rows if "samples" in row] == [19999] * written and written >= 4
    assert [row["last"] for row in rows if "last" in row] == [True]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_said_once_and_training_goes_on(run_dir, capsys):
    (run_dir / "records").mkdir()
    (run_dir / "records" / "3.jsonl").symlink_to("/dev/full")
    for step in range(3):
        record(step=step)
    assert capsys.readouterr().err == (
        f"ddp_lesson: rank 3 cannot record to {run_dir}/records/3.jsonl: No space left on device. It goes on without.\n"
    )


def test_a_line_cut_by_a_full_disk_costs_only_itself(tmp_path):
    code = """if True:
    import resource
    from ddp_lesson.rank import record
    record(step=0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    record(step=1, text="x" * 200)
    record(step=2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    record(step=3)
    """
    result = python("-c", code, run_dir=tmp_path)
    assert result.returncode == 0 and result.stderr.count("\n") == 1
    assert "only a part of a line could be written" in result.stderr
    assert [row["step"] for row in read(tmp_path)] == [0, 3]


def test_a_run_directory_that_is_gone_is_said_once_and_not_made_again(run_dir, monkeypatch, capsys):
    gone = run_dir / "gone"
    monkeypatch.setenv("DDP_LESSON_RUN_DIR", str(gone))
    records.forget()
    record(step=0)
    record(step=1)
    assert capsys.readouterr().err.count("No such file or directory") == 1
    assert not gone.exists()


def test_nothing_at_all_is_raised_where_stderr_is_closed(tmp_path):
    code = "import sys; sys.stderr.close()\nfrom ddp_lesson.rank import record\nrecord(x=1); print('on')"
    assert python("-c", code, run_dir=tmp_path / "gone").stdout == "on\n"


def test_a_forked_child_with_another_rank_records_under_it(run_dir):
    record(who="parent")
    pid = os.fork()
    if pid == 0:
        os.environ["RANK"] = "5"
        record(who="child")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert {row["who"]: row["rank"] for row in read(run_dir)} == {"parent": 3, "child": 5}


def test_a_rank_that_is_no_number_counts_as_0(run_dir, monkeypatch):
    monkeypatch.setenv("RANK", "../x")
    records.forget()
    record(a=1)
    assert json.loads((run_dir / "records" / "0.jsonl").read_text())["rank"] == 0


def test_a_restarted_rank_says_which_attempt_it_is(run_dir, monkeypatch):
    record(step=0)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    records.forget()
    record(step=0)
    assert [row.get("attempt") for row in read(run_dir, 4)] == [None, 2]
