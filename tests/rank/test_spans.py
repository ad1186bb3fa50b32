import time

import pytest
import torch

from ddp_lesson.rank import span

from .conftest import read


def test_a_span_says_when_it_began_and_how_long_it_took(run_dir):
    with span("sleep", step=3, sizes=[1, torch.tensor(2)]):
        time.sleep(0.02)
    (row,) = read(run_dir)
    assert 0 <= row.pop("t") < 5
    assert 0.02 <= row.pop("duration") < 5
    assert row == {"rank": 3, "name": "sleep", "kind": "span", "step": 3, "sizes": [1, 2]}


def test_a_nested_span_lies_within_the_outer_one(run_dir):
    with span("outer"), span('in"ner'):
        time.sleep(0.001)
    outer, inner = sorted(read(run_dir), key=lambda row: -row["duration"])
    assert (outer["name"], inner["name"]) == ("outer", 'in"ner')
    assert outer["t"] <= inner["t"]
    assert inner["t"] + inner["duration"] <= outer["t"] + outer["duration"] + 2e-6


def test_spans_that_end_with_an_exception_are_recorded_as_failed_and_let_it_pass(run_dir):
    with pytest.raises(ZeroDivisionError), span("outer"):
        with span("fine"):
            pass
        with span("inner", step=1):
            _ = 1 / 0
    assert {row["name"]: row.get("failed", False) for row in read(run_dir)} == {
        "fine": False,
        "inner": True,
        "outer": True,
    }


def test_a_profiler_sees_the_name_with_and_without_a_run_directory(request):
    for fixture in (None, "run_dir"):
        if fixture:
            request.getfixturevalue(fixture)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            with span("my forward"):
                torch.ones(3).sum()
            with pytest.raises(KeyError), span("my failure"):
                raise KeyError
        names = {event.key for event in profiler.key_averages()}
        assert {"my forward", "my failure", "aten::sum"} <= names


def test_bad_names_keys_and_values_are_refused_before_the_block_runs(run_dir):
    with pytest.raises(TypeError, match="a span's name is a string, not 3"):
        span(3)
    with pytest.raises(ValueError, match=r"^duration is a key that a span sets itself: choose another name for yours$"):
        span("x", duration=1)
    with pytest.raises(TypeError, match=r"^x is a tensor of shape \(2,\)"):
        span("x", x=torch.ones(2))
    assert read(run_dir) == []


def test_without_a_run_directory_a_span_does_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with span("x", step=1):
        pass
    assert list(tmp_path.iterdir()) == []
