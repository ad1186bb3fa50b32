"""The cheat sheet shows the final script, and the links of both pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_the_cheat_sheet_is_the_final_script_with_a_note_for_each_line():
    page = (ROOT / "docs" / "cheatsheet.md").read_text(encoding="utf-8")
    shown = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1).splitlines()
    lines = [re.sub(r" +# \d.*$", "", line) for line in shown if not re.fullmatch(r" *# \d.*", line)]
    assert lines == (ROOT / "ddp_lesson" / "scripts" / "step6_train.py").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_glossary_is_in_the_order_of_the_alphabet_and_names_steps():
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| .+ \| ([\d, ]+) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    words = [word.lower() for word, _ in rows]
    assert len(words) > 40
    assert words == sorted(words)
    assert all(0 <= int(step) <= 6 for _, steps in rows for step in steps.split(","))
