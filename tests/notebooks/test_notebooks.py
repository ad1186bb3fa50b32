"""The committed notebooks: their form, their stored outputs, their scripts."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from ddp_lesson.launch.options import parse
from ddp_lesson.launch.scripts import LEDGER, _digest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
SCRIPTS = ROOT / "ddp_lesson" / "scripts"


def code_cells(path: Path) -> list:
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code" and c.source.strip()]


def text_of(cell) -> str:
    """All text that a cell has stored."""
    parts = []
    for output in cell.outputs:
        parts += [output.get("text", ""), *output.get("traceback", [])]
        parts += [value for kind, value in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join(parts)


def launches(path: Path) -> list[tuple]:
    """(options, the script's text, the cell) of every distributed cell that launches something."""
    found = []
    for cell in code_cells(path):
        first, _, rest = cell.source.partition("\n")
        if first.startswith("%%torchrun"):
            options = parse(shlex.split(first)[1:])
            if options.expect_failure and "Nothing was launched." in text_of(cell):
                continue  # a syntax error, shown on purpose
            found.append((options, rest + "\n", cell))
    return found


ALL = [(path, *launch) for path in NOTEBOOKS for launch in launches(path)]
EACH_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
EACH_LAUNCH = pytest.mark.parametrize(
    "options, source, cell", [row[1:] for row in ALL], ids=[row[1].script for row in ALL]
)


def test_there_are_notebooks_and_each_script_has_one_cell():
    names = [options.script for _, options, _, _ in ALL]
    assert {"step0_hello.py", "step4_train.py"} <= set(names)
    assert len(names) == len(set(names))
    assert sorted(names) == sorted(path.name for path in SCRIPTS.glob("*.py"))


@EACH_LAUNCH
def test_a_committed_script_equals_its_cell_and_is_known_as_written_by_the_kit(options, source, cell):
    assert (SCRIPTS / options.script).read_text() == source
    ledger = json.loads((SCRIPTS / LEDGER).read_text())
    assert _digest(source.encode()) in ledger[options.script]


def test_scripts_pass_ruff():
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", str(SCRIPTS)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout


# Bare torchrun takes seconds for each: by default it runs the example that grows and the first script of each notebook.
FIRST = {launches(path)[0][0].script for path in NOTEBOOKS}
EVERY = os.environ.get("DDP_LESSON_EVERY_SCRIPT") == "1"


def printed_by_rank(cell) -> list[str]:
    """What each rank printed, as the cell has stored it; first what stands above the ranks."""
    shown = next(output.data["text/plain"] for output in cell.outputs if "data" in output)
    return re.split(r"^── rank \d+, .*\n?", shown, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def alone():
    """Launches a script without anything of ours in its environment."""
    from ddp_lesson import torchrun
    from ddp_lesson.launch.client import pool

    nothing = {"DDP_LESSON_RUN_DIR": None, "DDP_LESSON_T0_NS": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT / "notebooks")
        yield lambda script, **options: torchrun(f"../ddp_lesson/scripts/{script}", env=nothing, **options)
        pool.close()


@EACH_LAUNCH
def test_a_script_runs_alone_and_prints_the_same(options, source, cell, alone):
    if options.timeout:
        pytest.skip("this script ends only at the kit's deadline")
    run = alone(options.script, nproc_per_node=options.nproc, timeout=60, options=options.torchrun)
    assert run.ok != options.expect_failure, run.failure
    assert run.records == []
    if run.ok:
        assert [rank.stdout.strip() for rank in run.ranks] == [text.strip() for text in printed_by_rank(cell)[1:]]


@pytest.mark.timeout(90)
@EACH_LAUNCH
def test_the_command_shown_runs_the_script_under_bare_torchrun_and_prints_the_same(options, source, cell, tmp_path):
    if options.timeout:
        pytest.skip("this script ends only at the kit's deadline")
    if not (EVERY or options.script in FIRST or re.fullmatch(r"step\d_(train|single)\.py", options.script)):
        pytest.skip("DDP_LESSON_EVERY_SCRIPT=1 runs all of them")
    command, *stored = printed_by_rank(cell)
    words = shlex.split(re.search(r"^\$ torchrun (.*)$", command, re.MULTILINE).group(1))
    # One file per rank, by torchrun's own options: on a shared pipe the lines of two ranks come out mixed.
    words = [sys.executable, "-m", "torch.distributed.run", "--redirects", "3", "--log-dir", str(tmp_path), *words]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT / "notebooks", timeout=80)
    if options.expect_failure:
        assert done.returncode != 0
        return
    # The exit code is not compared: about one bare run in forty aborts in gloo's threads after its last line.
    for rank, text in enumerate(stored):
        errors = next(tmp_path.glob(f"*/attempt_0/{rank}/stderr.log")).read_text()
        assert next(tmp_path.glob(f"*/attempt_0/{rank}/stdout.log")).read_text().strip() == text.strip(), errors


@EACH_NOTEBOOK
def test_all_cells_were_executed_in_order(path):
    assert [cell.execution_count for cell in code_cells(path)] == list(range(1, len(code_cells(path)) + 1))


@EACH_NOTEBOOK
def test_stored_outputs_hold_no_error_no_widget_state_and_no_path_of_a_machine(path):
    notebook = nbformat.read(path, as_version=4)
    assert "widgets" not in notebook.metadata
    for cell in code_cells(path):
        text = text_of(cell)
        assert "UsageError" not in text
        assert "widget-view" not in json.dumps(cell.outputs)
        if "raises-exception" not in cell.metadata.get("tags", []):
            assert all(output.output_type != "error" for output in cell.outputs)
        assert not re.search(r"/(root|home|work|tmp|Users|mnt|opt|usr|var|srv)/\w", text), text


@EACH_NOTEBOOK
def test_pictures_are_stored(path):
    plots = [cell for cell in code_cells(path) if ".plot" in cell.source]
    assert plots
    for cell in plots:
        assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source


@EACH_NOTEBOOK
def test_the_form_is_kept(path):
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(path)
    assert statistics.median(len(cell.source.splitlines()) for cell in cells) <= 6
    assert max(len(source.splitlines()) for _, source, _ in launches(path)) <= 60
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            prose = [line for line in cell.source.splitlines() if not line.startswith(("|", "#"))]
            assert len(" ".join(prose).split()) <= 65, cell.source
    ignored = [c for c in cells if "nbval-ignore-output" in c.metadata.get("tags", []) or "NBVAL_IGNORE" in c.source]
    assert len(ignored) <= len(cells) / 10


@EACH_NOTEBOOK
def test_links_lead_somewhere(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\(([^)#]+)\)", cell.source if cell.cell_type == "markdown" else ""):
            assert target.startswith("http") or (path.parent / target).exists(), target


def copy_of_start(folder: Path, change: tuple[str, str] | None) -> Path:
    """The first cells of notebook 0 in a project of their own, one stored output changed."""
    notebook = nbformat.read(ROOT / "notebooks" / "0_start.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "preflight" not in cell.source][:12]
    text = nbformat.writes(notebook)
    if change:
        assert change[0] in text
        text = text.replace(*change)
    (folder / "notebooks").mkdir(parents=True)
    (folder / "ddp_lesson" / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "conftest.py", folder)
    copy = folder / "notebooks" / "0_start.ipynb"
    copy.write_text(text)
    return copy


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "change, passes",
    [
        (None, True),
        (("I am rank 1 of 2", "I am rank 7 of 2"), False),
    ],
    ids=["as it is", "another text"],
)
def test_a_falsified_output_makes_nbval_fail(tmp_path, change, passes):
    copy = copy_of_start(tmp_path, change)
    options = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", str(ROOT / "tests" / "sanitize.cfg")]
    options += ["-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    words = [sys.executable, "-m", "pytest", *options, str(copy)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (done.returncode == 0) is passes, done.stdout[-3000:]
    assert " passed" in done.stdout
