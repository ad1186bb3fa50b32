"""A torchrun line is read as torchrun reads it, and nonsense is answered with one sentence before anything starts."""

from __future__ import annotations

import pytest

from ddp_lesson import LaunchError, torchrun
from ddp_lesson.launch.options import FLAGS, WITH_VALUE, parse


def test_the_options_are_those_of_the_installed_torchrun():
    from torch.distributed.run import get_args_parser

    with_value, flags = set(), set()
    for action in get_args_parser()._actions:
        names = {"--" + name[2:].replace("_", "-") if name[:2] == "--" else name for name in action.option_strings}
        (flags if action.nargs == 0 else with_value).update(names)
    assert with_value == WITH_VALUE
    assert flags - {"-h", "--help"} == FLAGS


def test_everything_after_the_script_is_the_scripts_own():
    line = "--timeout 5 --standalone --nproc_per_node=3 --max-restarts 1 --as a -t3 x.py --timeout 9 --nonsense -- y.py"
    found = parse(line.split())
    assert (found.timeout, found.nproc, found.name, found.script) == (5.0, 3, "a", "x.py")
    assert found.torchrun == ["--standalone", "--max-restarts", "1", "-t", "3"]
    assert found.args == ["--timeout", "9", "--nonsense", "--", "y.py"]
    assert not found.cold and not found.expect_failure


BAD = {
    "--nproc-per-node 0": "at least 1 rank",
    "--nproc-per-node -3": "at least 1 rank",
    "--nproc-per-node two": "must be a whole number, 1 or more",
    "--nproc-per-node 2.5": "must be a whole number, 1 or more",
    "--nproc-per-node=": "must be a whole number, 1 or more",
    "--nproc-per-node +-2": "must be a whole number, 1 or more",
    "--nproc-per-node ²": "must be a whole number, 1 or more",
    "--nproc-per-node 5000": "more ranks than one machine can hold",
    "--nproc-per-node": "--nproc-per-node needs a value after it",
    "--nproc_per_nod 2": "did you mean --nproc-per-node?",
    "--nonsense": "--nonsense is no option of torchrun or of the kit: see torchrun --help",
    "-x": "-x is no option",
    "--": "-- is no option",
    "--help": "--help is no option of torchrun or of the kit: see torchrun --help",
    "--timeout": "--timeout needs a value",
    "--timeout 0": "number of seconds above 0",
    "--timeout -1": "number of seconds above 0",
    "--timeout soon": "number of seconds above 0",
    "--timeout nan": "number of seconds above 0",
    "--timeout inf": "number of seconds above 0",
    "--timeout 1e999": "number of seconds above 0",
    "--as": "--as needs a value",
    "--as 2x": "needs a Python name",
    "--as a-b": "needs a Python name",
    "--as class": "needs a Python name",
    "--as=": "needs a Python name",
    "--cold=1": "--cold takes no value",
    "--standalone=yes": "--standalone takes no value",
    "--max-restarts many": "a whole number, 0 or more",
    "--max-restarts -1": "a whole number, 0 or more",
    "--shutdown-timeout 1.5": "a whole number, 0 or more",
    "--monitor-interval fast": "a number of seconds",
    "--monitor-interval inf": "a number of seconds",
    "--nnodes 0": "a number of nodes from 1 on",
    "--nnodes 2:1": "a number of nodes from 1 on",
    "--nnodes :2": "a number of nodes from 1 on",
    "--nnodes a": "a number of nodes from 1 on",
    "--log-dir logs": "--log-dir cannot be used here",
    "-r 3": "-r cannot be used here",
    "-m": "give the script's file",
    "--no-python": "--no-python cannot be used here",
}


@pytest.mark.parametrize("line", BAD)
def test_nonsense_is_answered_with_one_sentence(line):
    with pytest.raises(LaunchError) as caught:
        parse([*line.split(" "), "x.py"] if " " in line or "=" in line else [line])
    text = str(caught.value)
    assert BAD[line] in text
    assert line.split()[0].partition("=")[0].replace("_", "-") in text
    assert "\n" not in text and text[-1] in ".?"


@pytest.mark.parametrize("ranks", [0, -1, 1.5, True, "many", float("nan"), object()])
def test_python_callers_get_the_same_answers(home, ranks):
    with pytest.raises(LaunchError, match=r"ranks? must be|at least 1 rank"):
        torchrun("x.py", nproc_per_node=ranks)
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"timeout": 0}, "above 0"),
        ({"timeout": True}, "above 0"),
        ({"timeout": "soon"}, "above 0"),
        ({"options": ["--nonsense"]}, "--nonsense is no option"),
        ({"options": ["y.py"]}, "the script is the first argument"),
        ({"env": {"A=B": "1"}}, "A=B"),
        ({"env": {"": "1"}}, "variable"),
        ({"env": {"A": "x\0y"}}, "A"),
        ({"nproc_per_node": "gpu"}, "no GPU"),
    ],
)
def test_python_callers_get_one_sentence(home, arguments, words):
    (home / "x.py").write_text("")
    with pytest.raises(LaunchError, match=words) as caught:
        torchrun("x.py", **arguments)
    assert "\n" not in str(caught.value)
    assert [path.name for path in home.iterdir()] == ["x.py"]


@pytest.mark.parametrize("script", ["absent.py", ".", "", "x\0.py", "x" * 300 + ".py"])
def test_a_script_that_is_not_there_is_named(home, script):
    with pytest.raises(LaunchError, match=r"no such script|is a folder"):
        torchrun(script)
    assert not list(home.iterdir())


def test_an_argument_that_no_process_can_be_given(home):
    (home / "x.py").write_text("")
    with pytest.raises(LaunchError, match="argument"):
        torchrun("x.py", "a\0b")


def test_torchruns_own_complaint_about_an_option_is_what_is_shown(home):
    (home / "x.py").write_text("")
    run = torchrun("x.py", nproc_per_node=2, timeout=60, options=["--start-method", "nonsense"])
    assert not run.ok and run.failure.rank is None
    assert "--start-method" in run.failure.exception and "invalid choice: 'nonsense'" in run.failure.exception


def test_options_reach_torchrun_unchanged(home):
    (home / "x.py").write_text(
        "import os, sys\nprint(os.environ['LOCAL_RANK'], os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and os.environ['RANK'] == '1')\n"
    )
    options = ["--max-restarts", "1", "--role", "worker", "-t", "3"]
    run = torchrun("x.py", nproc_per_node=2, timeout=60, options=options)
    assert run.ok
    assert " --max-restarts 1 --role worker -t 3 x.py" in run.command
    assert [rank.exitcode for rank in run.ranks] == [0, 0]
    assert run.ranks[1].stdout == "1 0\n1 1\n"  # both attempts, in order
    assert [end["attempt"] for end in run.exits if end["rank"] == 1] == [0, 1]
    for line in ("1 1", "to stderr"):  # --tee shows the ranks' lines in torchrun's own output
        assert f"[worker1]:{line}\n" in run.launcher_log
