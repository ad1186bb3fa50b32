"""Two real ranks under torchrun."""

import os
from collections import Counter

import pytest

from .conftest import SCRIPTS, launch, python, read


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("trained")
    result = launch("trained.py", run_dir)
    assert result.returncode == 0, result.stderr
    return read(run_dir, 2)


def named(rows, name):
    return [row for row in rows if row["name"] == name]


def test_each_rank_records_under_its_number_on_one_time_axis(trained):
    assert {row["rank"] for row in trained} == {0, 1}
    assert all(0 < row["t"] < 60 for row in trained)


def test_dataloader_workers_record_into_the_file_of_their_rank(trained):
    for rank in (0, 1):
        reads = [row for row in named(trained, "read") if row["rank"] == rank]
        (main,) = (row["pid"] for row in named(trained, "main") if row["rank"] == rank)
        assert sorted(row["sample"] for row in reads) == list(range(8))
        assert len({row["pid"] for row in reads} - {main}) == 2
        batches = [row["squares"] for row in named(trained, "record") if row["rank"] == rank]
        assert batches == [[0, 1], [4, 9], [16, 25], [36, 49]]


@pytest.mark.parametrize("variant", ["plain", "bucket view", "unused", "own group"])
def test_the_hook_gives_the_gradients_that_ddp_gives_without_it(trained, variant):
    rows = [row for row in named(trained, "gradients") if row["variant"] == variant]
    assert [row["same"] for row in rows] == [True, True]
    assert rows[0]["largest"] == rows[1]["largest"] > 0.1  # of different data, so they were averaged
    assert [row["tensors"] for row in rows] == [24, 24]


def test_every_bucket_has_a_span_and_no_sync_has_none(trained):
    for block in (row for row in trained if row["name"] == "plain"):
        spans = [
            row
            for row in named(trained, "all-reduce")
            if row["rank"] == block["rank"] and block["t"] <= row["t"] <= block["t"] + block["duration"]
        ]
        # one bucket in the first step, two from then on; the two backward passes of a step communicate once
        assert Counter(row["step"] for row in spans) == {0: 1, 1: 2, 2: 2, 3: 2}
        assert {row["kind"] for row in spans} == {"span"}
        parameters = 20 * 30 + 30 + 30 * 30 + 30 + 30 * 3 + 3
        for step in range(4):
            assert sum(row["bytes"] for row in spans if row["step"] == step) == 8 * parameters
        assert all(row["t"] + row["duration"] <= block["t"] + block["duration"] + 1e-5 for row in spans)


def test_the_meter_of_a_rank_on_the_cpu_sees_its_process(trained):
    for rank in (0, 1):
        (meter,) = (row for row in named(trained, "meter") if row["rank"] == rank)
        (big,) = (row for row in named(trained, "big tensor") if row["rank"] == rank)
        lines = [row for row in named(trained, "memory") if row["rank"] == rank]
        assert meter["categories"] == {"process memory": meter["peak"]}
        assert meter["peak"] - meter["timeline"][0][1] > 24 << 20
        assert [[row["t"], row["bytes"]] for row in lines] == [[round(t, 6), size] for t, size in meter["timeline"]]
        assert lines[0]["t"] <= big["t"] <= lines[-1]["t"]
        assert {(row["kind"], row["source"]) for row in lines} == {("memory", "process")}


def test_a_rank_killed_in_the_middle_of_a_line_leaves_readable_records(tmp_path):
    result = launch("killed.py", tmp_path)
    assert result.returncode == 1 and "SIGKILL" in result.stderr
    assert (tmp_path / "records" / "1.jsonl").read_bytes().endswith(b'"name":"rec')
    assert sorted((row["rank"], row["step"], row["note"]) for row in read(tmp_path, 2)) == [
        (0, 1, "before"),
        (1, 1, "before"),
    ]


def test_without_a_run_directory_nothing_is_written_and_no_hook_registered(tmp_path):
    result = python(SCRIPTS / "alone.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "peak True\n"), result.stderr
    assert os.listdir(tmp_path) == []
