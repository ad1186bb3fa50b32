"""A cell's script is written exactly as it stands, and nothing that a person wrote is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lesson import LaunchError
from ddp_lesson.launch import scripts


def names(home: Path) -> set[str]:
    return {path.name for path in (home / "ddp_lesson" / "scripts").glob("*")}


@pytest.mark.parametrize("name", ["x.py", "a b.py", "größe.py", "sub/x.py", "./x.py", "..x.py"])
def test_a_script_is_written_as_it_stands(home, name):
    text = "# größe\r\nprint('x')  \n\n\n"
    path, kept = scripts.write(name, text)
    assert path == home / "ddp_lesson" / "scripts" / name
    assert path.read_bytes() == text.encode()
    assert kept is None


@pytest.mark.parametrize(
    "name",
    ["../x.py", "/tmp/x.py", "sub/../../x.py", "~/x.py", "..", "x.txt", "x", ".py", "sub/.py", "", None, "x\0.py"],
)
def test_other_names_are_refused(home, name):
    with pytest.raises(LaunchError, match=r"ddp_lesson/scripts/|must end in \.py|names no script") as caught:
        scripts.write(name, "pass\n")
    assert "\n" not in str(caught.value)
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_a_link_that_leads_out_of_the_folder_is_refused(home):
    scripts.scripts_folder().mkdir(parents=True)
    (scripts.scripts_folder() / "out").symlink_to(home)
    with pytest.raises(LaunchError, match="ddp_lesson/scripts/"):
        scripts.write("out/x.py", "pass\n")


def test_an_edited_script_is_kept_and_an_unedited_one_is_not(home):
    path, _ = scripts.write("x.py", "first\n")
    assert scripts.write("x.py", "second\n")[1] is None
    path.write_text("by hand\n")
    _, kept = scripts.write("x.py", "third\n")
    assert (kept.name, kept.read_text(), path.read_text()) == ("x.edited-1.py", "by hand\n", "third\n")
    # Going back to what the kit wrote before is no edit; nor is writing the same again.
    path.write_text("second\n")
    assert scripts.write("x.py", "third\n")[1] is None
    assert scripts.write("x.py", "third\n")[1] is None
    path.write_text("by hand again\n")
    assert scripts.write("x.py", "fourth\n")[1].name == "x.edited-2.py"
    # The same edit twice needs one copy.
    path.write_text("by hand\n")
    assert scripts.write("x.py", "fifth\n")[1].name == "x.edited-1.py"
    assert names(home) == {"x.py", "x.edited-1.py", "x.edited-2.py", scripts.LEDGER}


def test_a_script_that_the_kit_never_wrote_is_kept(home):
    scripts.scripts_folder().mkdir(parents=True)
    (scripts.scripts_folder() / "x.py").write_text("mine\n")
    _, kept = scripts.write("x.py", "yours\n")
    assert kept.read_text() == "mine\n"


@pytest.mark.parametrize("ledger", ["", "[]", "null", "{", '{"x.py": 3}', '{"x.py": [1]}', "\x00"])
def test_a_broken_ledger_loses_nothing(home, ledger):
    path, _ = scripts.write("x.py", "first\n")
    (path.parent / scripts.LEDGER).write_text(ledger)
    path.write_text("by hand\n")
    _, kept = scripts.write("x.py", "second\n")
    assert kept.read_text() == "by hand\n" and path.read_text() == "second\n"
    assert scripts.write("x.py", "third\n")[1] is None


@pytest.mark.parametrize(
    "cell, words",
    [
        ("x = 1\nif x\n    pass\n", "x.py, line 2, column 5: expected ':'"),
        ("x = (1，2)\n", "x.py, line 1, column 7: invalid character '，' (U+FF0C)"),
        ("def f():\nreturn 1\n", "x.py, line 2, column 1: expected an indented block"),
        ("\n\n  x = 1\n", "x.py, line 3, column 2: unexpected indent"),
        ("print('a'\n", "x.py, line 1, column 6: '(' was never closed"),
        ("%matplotlib inline\n", "This is a script, not a notebook cell"),
        ("!ls\n", "This is a script, not a notebook cell"),
        ("return 1\n", "x.py, line 1, column 1: 'return' outside function"),
        ("", "The cell holds no script"),
        (" \n\t\n", "The cell holds no script"),
        ("x = 1\0\n", "x.py cannot be read by Python"),
        ("x = '\ud800'\n", "x.py cannot be read by Python"),
    ],
)
def test_a_cell_that_is_no_script_is_named_with_line_and_column(cell, words):
    with pytest.raises(LaunchError) as caught:
        scripts.check_source(cell, "x.py")
    assert words in str(caught.value)
    assert "None" not in str(caught.value)


def test_a_warning_of_the_compiler_is_left_to_the_ranks(recwarn):
    scripts.check_source("x = 1\nx is 1\nprint('\\d')\n", "x.py")
    assert not recwarn.list
