"""``%%torchrun`` in a real kernel: what a cell writes, launches, shows and leaves behind."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from kernels import Cell, Kernel
from processes import run_dirs

FAILS = "import os\nif os.environ['RANK'] == '1':\n    raise ValueError('on purpose')\nimport time; time.sleep(60)\n"
AGENTS = "[agent.kind for agent in __import__('ddp_lesson.launch.client', fromlist='x').pool.agents]"
EACH = "import os\nprint('rank', os.environ['RANK'])\n"


def script(kernel: Kernel, name: str) -> Path:
    return kernel.home / "ddp_lesson" / "scripts" / name


def sentence(cell: Cell) -> str:
    """The only thing that a refused cell shows."""
    assert cell.status == "error"
    assert [output["output_type"] for output in cell.outputs] == ["error"]
    (text,) = cell.error
    assert "Traceback" not in text
    return text


def without_time(text: str) -> str:
    return re.sub(r"\d+\.\d s", "N s", text)


def test_loading_imports_nothing_heavy_and_starts_an_agent_in_the_background(kernel):
    # The fixture has just loaded it.
    heavy = "sorted({'torch', 'matplotlib', 'ipywidgets'} & __import__('sys').modules.keys())"
    assert kernel.value(heavy) == "[]"
    assert kernel.value(AGENTS) == "['warm']"
    assert "already loaded" in kernel.run("%load_ext ddp_lesson").text
    cell = kernel.run("%%torchrun first.py\n" + EACH)
    assert cell.status == "ok"
    assert kernel.value(heavy) == "[]"
    assert kernel.value(AGENTS) == "['warm']"


def test_what_a_cell_shows_does_not_depend_on_time(kernel):
    cells = [kernel.run("%%torchrun --nproc-per-node 2 each.py\n" + EACH) for _ in range(3)]
    assert [cell.messages for cell in cells] == [["display_data"]] * 3
    assert len({without_time(cell.text) for cell in cells}) == 1
    assert without_time(cells[0].text) == (
        "$ torchrun --nproc-per-node 2 ddp_lesson/scripts/each.py\n2 ranks finished in N s\n"
        "── rank 0, exit code 0\nrank 0\n── rank 1, exit code 0\nrank 1"
    )
    assert script(kernel, "each.py").read_text() == EACH
    assert kernel.value("run.ok, run.warm, run.script, run.nproc") == "(True, True, 'each.py', 2)"


def test_the_command_that_is_shown_does_the_same_in_a_shell(kernel):
    # One write a line: in a terminal, the ranks share one output.
    text = "import os, sys\nsys.stdout.write(f\"rank {os.environ['RANK']} {sys.argv[1:]}\\n\")\n"
    kernel.run("%%torchrun --nproc-per-node 2 shell.py 'a b' --x=\"it's\"\n" + text)
    done = subprocess.run(
        ["sh", "-c", kernel.literal("run.command")],
        cwd=kernel.home,
        env=kernel.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    shown = kernel.literal("[line for rank in run.ranks for line in rank.stdout.splitlines()]")
    assert sorted(done.stdout.splitlines()) == sorted(shown)
    assert shown[1] == "rank 1 ['a b', \"--x=it's\"]"


def test_a_live_view_ends_as_the_same_single_output(kernel):
    kernel.run("import os; os.environ['DDP_LESSON_LIVE'] = '1'")
    slow = EACH + "import time; time.sleep(0.5)\n"
    live = kernel.run("%%torchrun live.py\n" + slow)
    kernel.run("os.environ['DDP_LESSON_LIVE'] = '0'")
    still = kernel.run("%%torchrun live.py\n" + slow)
    assert live.messages[0] == "display_data" and set(live.messages[1:]) == {"update_display_data"}
    assert len(live.messages) > 2
    assert len(live.outputs) == 1
    assert without_time(live.text) == without_time(still.text)
    assert without_time(live.html) == without_time(still.html)


def test_a_failure_names_its_rank_and_stops_the_notebook(kernel):
    cell = kernel.run("%%torchrun fails.py\n" + FAILS)
    assert cell.status == "error"
    assert [output["output_type"] for output in cell.outputs] == ["display_data", "error"]
    assert cell.error == ["fails.py: rank 1 failed. (--expect-failure lets a notebook go on.)"]
    assert "It began on rank 1: ValueError: on purpose" in cell.text
    assert kernel.value("run.failure.rank, run.failure.exception, run.ok") == "(1, 'ValueError: on purpose', False)"


def test_a_failure_that_is_expected_lets_the_notebook_go_on(kernel):
    cell = kernel.run("%%torchrun --expect-failure fails.py\n" + FAILS)
    assert cell.status == "ok" and cell.messages == ["display_data"]
    assert "ValueError: on purpose" in cell.text
    cell = kernel.run("%%torchrun --expect-failure each.py\n" + EACH)
    assert cell.error == ["This run was expected to fail (--expect-failure), but every rank finished."]


def test_a_deadline_ends_the_cell(kernel):
    cell = kernel.run("%%torchrun --timeout 1 sleeps.py\nimport time; time.sleep(60)\n")
    assert cell.error[0].startswith("sleeps.py: the run did not end before its deadline.")
    assert "Still running at the deadline of 1 s: ranks 0, 1." in cell.text
    assert kernel.value("run.timed_out, run.failure.timed_out") == "(True, True)"


def test_the_result_goes_where_it_is_said(kernel):
    kernel.run("%%torchrun each.py\n" + EACH)
    kernel.run("before = run")
    cell = kernel.run("%%torchrun --as second each.py\n" + EACH)
    assert cell.status == "ok"
    assert kernel.value("second.nproc, run is before") == "(2, True)"


def test_cold_says_so(kernel):
    cell = kernel.run("%%torchrun --cold each.py\n" + EACH)
    assert "2 ranks finished in N s, cold" in without_time(cell.text)
    assert "rank 1" in cell.text
    assert kernel.value("run.warm") == "False"


def test_a_thousand_lines_of_two_ranks_are_folded_and_never_mixed(kernel):
    text = "import os, sys\nfor i in range(1000):\n    print('rank', os.environ['RANK'], 'line', i)\n"
    cell = kernel.run("%%torchrun --nproc-per-node 2 lines.py\n" + text)
    for rank in (0, 1):
        lines = [f"rank {rank} line {i}" for i in range(1000)]
        assert kernel.literal(f"run.ranks[{rank}].stdout").splitlines() == lines
        shown = [line for line in cell.text.splitlines() if line.startswith(f"rank {rank} line")]
        assert shown == [*lines[:40], *lines[-160:]]
    assert cell.text.count("800 of 1000 lines are not shown here") == 2
    places = re.findall(r"all are in (\S+)", cell.text)
    assert [(kernel.home / place).read_text().count("\n") for place in places] == [1000, 1000]
    assert cell.text.index("rank 0 line 999") < cell.text.index("rank 1 line 0")


def test_what_a_rank_writes_is_text_in_the_html(kernel):
    nasty = "<script>alert(1)</script>&amp;<b title='x'>"
    cell = kernel.run(f"%%torchrun --expect-failure nasty.py '<i>'\nprint({nasty!r})\nraise ValueError({nasty!r})\n")
    assert nasty in cell.text
    assert "<script" not in cell.html and "<b title" not in cell.html and "<i>'" not in cell.html
    assert cell.html.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;&lt;b title=") >= 3


def test_arguments_reach_the_script_as_a_shell_would_give_them(kernel):
    line = "%%torchrun --nproc-per-node=2 args.py one 'two three' \"it's\" --timeout 3 größe"
    kernel.run(line + "\nimport sys\nprint(sys.argv[1:])\n")
    expected = str(["one", "two three", "it's", "--timeout", "3", "größe"])
    assert kernel.literal("run.ranks[0].stdout") == expected + "\n"


def test_an_edited_script_is_kept_and_mentioned(kernel):
    kernel.run("%%torchrun edited.py\n" + EACH)
    script(kernel, "edited.py").write_text("print('by hand')\n")
    cell = kernel.run("%%torchrun edited.py\n" + EACH)
    note = "edited.py had been edited outside this cell: kept as edited.edited-1.py."
    assert note in cell.text and note in cell.html
    assert script(kernel, "edited.edited-1.py").read_text() == "print('by hand')\n"
    assert note in json.loads((run_dirs(kernel.home)[-1] / "run.json").read_text())["notes"]
    assert "edited outside" not in kernel.run("%%torchrun edited.py\n" + EACH).text


def test_the_line_magic_finds_a_script_that_a_cell_has_written(kernel):
    kernel.run("%%torchrun --nproc-per-node 1 from_a_cell.py\nprint('again')")
    assert "again" in kernel.run("%torchrun --nproc-per-node 1 from_a_cell.py").text


def test_a_picture_of_what_was_not_recorded_is_refused_in_one_sentence(kernel):
    kernel.run("%%torchrun --nproc-per-node 1 no_records.py\npass")
    assert "Traceback" not in sentence(kernel.run("run.plot('loss')"))


def test_the_line_magic_launches_a_script_that_is_there(kernel):
    (kernel.home / "mine.py").write_text(EACH)
    cell = kernel.run("%torchrun --nproc-per-node 2 mine.py")
    assert cell.status == "ok" and "$ torchrun --nproc-per-node 2 mine.py" in cell.text
    assert (kernel.home / "mine.py").read_text() == EACH


BAD = [
    ("%%torchrun --nproc-per-node 0 bad.py\npass\n", "a run needs at least 1 rank"),
    ("%%torchrun --nproc-per-node -1 bad.py\npass\n", "a run needs at least 1 rank"),
    ("%%torchrun --nproc-per-node two bad.py\npass\n", "must be a whole number, 1 or more"),
    ("%%torchrun\npass\n", "names no script"),
    ("%%torchrun --nproc-per-node 2\npass\n", "names no script"),
    ("%%torchrun ../bad.py\npass\n", "scripts are written into ddp_lesson/scripts/"),
    ("%%torchrun /tmp/bad.py\npass\n", "scripts are written into ddp_lesson/scripts/"),
    ("%%torchrun bad.txt\npass\n", "must end in .py"),
    ("%%torchrun --nonsense bad.py\npass\n", "--nonsense is no option of torchrun or of the kit"),
    ("%%torchrun --timeout soon bad.py\npass\n", "the deadline must be a number of seconds above 0"),
    ("%%torchrun --as 1st bad.py\npass\n", "the result needs a Python name"),
    ("%%torchrun 'bad.py\npass\n", "The %%torchrun line cannot be read: No closing quotation"),
    ("%%torchrun bad.py\n\n", "The cell holds no script"),
    ("%%torchrun bad.py\nx = (\n", "bad.py, line 1, column 5: '(' was never closed. Nothing was launched."),
    ("%%torchrun bad.py\nx = 1\n%time x\n", "bad.py, line 2, column 1: invalid syntax. This is a script"),
    ("%torchrun", "Which script?"),
    ("%torchrun absent.py", "absent.py: there is no such script"),
]


@pytest.mark.parametrize("cell, words", BAD)
def test_bad_input_gets_one_sentence_and_launches_nothing(kernel, cell, words):
    before = run_dirs(kernel.home)
    assert words in sentence(kernel.run(cell))
    assert run_dirs(kernel.home) == before
    assert not script(kernel, "bad.py").exists()


def test_a_syntax_error_that_is_expected_is_shown_and_nothing_is_launched(kernel):
    before = run_dirs(kernel.home)
    cell = kernel.run("%%torchrun --expect-failure bad.py\nprint('a'，'b')\n")
    assert cell.status == "ok" and cell.messages == ["stream"]
    assert "bad.py, line 1, column 10: invalid character '，' (U+FF0C)" in cell.text
    assert run_dirs(kernel.home) == before


def test_a_cell_without_lines_is_answered(kernel):
    cell = kernel.run("%%torchrun bad.py")
    assert cell.status == "error" and cell.messages == ["stream"]
    assert "the cell body is empty" in cell.text and "Traceback" not in cell.text


def test_unloading_ends_the_agents_and_loading_again_works(kernel):
    kernel.run("%unload_ext ddp_lesson")
    assert kernel.value(AGENTS) == "[]"
    kernel.run("%load_ext ddp_lesson")
    assert kernel.value(AGENTS) == "['warm']"
    assert kernel.run("%%torchrun each.py\n" + EACH).status == "ok"
