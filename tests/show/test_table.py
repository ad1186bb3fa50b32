from __future__ import annotations

import re

from ddp_lesson.show import table


def test_a_row_per_rank_tells_how_it_ended_and_what_it_said_last(runs) -> None:
    rows = table(runs["digits"]).rows
    assert [(row["rank"], row["exitcode"], row["last_line"]) for row in rows] == [
        (rank, 0, f"rank {rank} has trained 8 steps") for rank in (0, 1)
    ]
    assert all(row["seconds"] > 0 and row["records"] > 100 for row in rows)


def test_of_a_failed_rank_the_error_is_the_last_line(runs) -> None:
    rows = table(runs["failed"]).rows
    assert rows[1]["exitcode"] == 1
    assert rows[1]["last_line"] == "[rank1]: ValueError: a <b>broken</b> sample"


def test_html_is_escaped_and_text_is_a_table(runs) -> None:
    shown = table(runs["failed"])
    html = shown._repr_html_()
    assert "&lt;b&gt;broken&lt;/b&gt;" in html and "<b>" not in html
    lines = repr(shown).splitlines()
    assert lines[0].split() == ["rank", "exit", "code", "seconds", "records", "last", "line"]
    assert re.match(r" +1 +1 +\d+\.\d\d +\d+  \[rank1\]: ValueError", lines[2])


def test_a_rank_whose_end_is_unknown_has_a_dash(recorded) -> None:
    shown = table(recorded(1, lambda rank: None))
    assert shown.rows == [{"rank": 0, "exitcode": None, "seconds": None, "records": 0, "last_line": ""}]
    assert repr(shown).splitlines()[1].split() == ["0", "–", "–", "0"]
