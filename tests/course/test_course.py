"""Differences between scripts, and guesses."""

from __future__ import annotations

import pytest

from ddp_lesson.course import diff, guess
from ddp_lesson.launch.errors import LaunchError


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    folder = tmp_path / "ddp_lesson" / "scripts"
    folder.mkdir(parents=True)
    monkeypatch.setenv("DDP_LESSON_HOME", str(tmp_path))
    (folder / "a.py").write_text("one\ntwo\nthree\n")
    (folder / "b.py").write_text("one\n2 < 3\nthree\n")


def test_a_diff_shows_what_goes_and_what_comes(scripts):
    found = diff("a.py", "b.py")
    assert found.lines == (" one", "-two", "+2 < 3", " three")
    assert found.changed == 2
    assert repr(found) == " one\n-two\n+2 < 3\n three"


def test_a_diff_escapes_what_the_script_holds(scripts):
    assert "+2 &lt; 3" in diff("a.py", "b.py")._repr_html_()


def test_equal_scripts_have_an_empty_diff(scripts):
    assert diff("a.py", "a.py").lines == ()


def test_a_script_that_is_not_there_yet_is_said_in_a_sentence(scripts):
    with pytest.raises(LaunchError, match=r"^c.py is not there yet"):
        diff("a.py", "c.py")


@pytest.mark.parametrize("mine, truth", [(6, 6), ([1, 0], [0, 1]), ({0, 1}, (0, 1)), ("a", "a")])
def test_a_right_guess_is_confirmed(mine, truth):
    assert guess(mine, truth).startswith("Yes")


def test_a_wrong_guess_is_told_the_truth():
    assert "the run shows [0, 1]" in guess([8, 9], [0, 1])


def test_no_guess_is_told_nothing():
    assert "6" not in guess(None, 6)
