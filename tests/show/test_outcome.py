"""What stands below a cell, from runs that really ended so."""

from __future__ import annotations

import pytest

from ddp_lesson import torchrun
from ddp_lesson.show.live import Live
from ddp_lesson.show.outcome import as_html, as_text, outcome, shorten


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """Launches a script text on two ranks in a project of its own."""
    home = tmp_path_factory.mktemp("project")

    def launched(text: str, **options):
        path = home / "some.py"
        path.write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DDP_LESSON_HOME", str(home))
            return torchrun(path, nproc_per_node=2, timeout=60, **options)

    yield launched
    from ddp_lesson.launch.client import pool

    pool.close()


def test_each_rank_has_its_own_lines_in_rank_order(launch):
    run = launch("import os\nfor i in range(3): print('line', i, 'of', os.environ['RANK'])")
    text = as_text(run)
    for rank in 0, 1:
        assert f"── rank {rank}, exit code 0\nline 0 of {rank}\nline 1 of {rank}\nline 2 of {rank}" in text
    assert text.index("rank 0") < text.index("rank 1")
    assert set(outcome(run)) == {"text/plain", "text/html"}


def test_what_ranks_write_is_escaped_and_colours_and_redrawn_bars_are_gone(launch):
    run = launch("print('<script>alert(1)</script>\\x1b[31mred\\x1b[0m')\nprint('10 %\\r50 %\\r100 %')")
    page = as_html(run)
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert "\x1b" not in page and "red" in page
    assert "100 %" in page and "50 %" not in page


def test_long_output_is_folded_and_all_of_it_is_in_the_file_that_is_named(launch):
    run = launch("for i in range(1000): print('number', i)")
    text = as_text(run)
    assert "number 0\n" in text and "number 999\n" in text and "number 500\n" not in text
    assert "800 of 1000 lines are not shown here" in text
    assert len(text.splitlines()) < 420
    assert run.ranks[0].stdout.count("\n") == 1000


def test_a_failure_is_said_first_and_the_victim_s_words_are_folded(launch):
    run = launch(
        "import os, time\nif os.environ['RANK'] == '1': raise ValueError('planted')\ntime.sleep(30)",
    )
    text = as_text(run)
    lines = text.splitlines()
    assert lines[1].startswith("The run of 2 ranks failed")
    assert lines[2] == "It began on rank 1: ValueError: planted"
    assert "── rank 0, ended because of rank 1" in text
    assert '<details class="echo">' in as_html(run)


def test_paths_are_shown_from_here(launch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shorten(f"{tmp_path}/a/b.py") == "a/b.py"
    import torch

    assert shorten(torch.__file__) == "…/torch/__init__.py"


def test_the_live_view_shows_progress_and_the_last_line_of_each_rank(launch):
    seen = []

    class Seen(Live):
        def show(self, bundle):
            seen.append(bundle["text/html"])

    text = (
        "import os, time\nfrom ddp_lesson.rank import record\n"
        "for i in range(8):\n    record(step=i, total=8)\n    print('at', i)\n    time.sleep(0.1)\n"
    )
    run = launch(text, watch=Seen())
    assert run.ok
    middle = [page for page in seen if "at 4" in page]
    assert middle and '<progress value="5" max="8"' in middle[0]
    assert all("rank 0" in page and "rank 1" in page for page in seen)
