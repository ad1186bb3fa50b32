"""pyproject.toml, requirements.txt and environment.yml ask for the same things."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pinned() -> dict[str, str]:
    """Name → version of requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    rows = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in rows}


def test_every_direct_dependency_is_pinned_within_its_range():
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pinned()[canonicalize_name(requirement.name)]), requirement


def test_every_pin_is_what_is_installed_here():
    for name, version in pinned().items():
        assert importlib.metadata.version(name).partition("+")[0] == version


def test_every_installed_dependency_of_a_pin_is_pinned():
    pins = pinned()
    for name in pins:
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert canonicalize_name(requirement.name) in {*pins, "pip", "setuptools"}, (name, text)


def test_conda_and_binder_get_the_same_requirements():
    text = (ROOT / "environment.yml").read_text()
    assert re.search(r"^name: ddp-lesson$", text, re.MULTILINE)
    assert "-r requirements.txt" in text and "--editable ." in text
    version = re.search(r"- python=([\d.]+)$", text, re.MULTILINE).group(1)
    assert PROJECT["requires-python"] == f">={version}"
    assert re.findall(r"^  - (\w+)", text, re.MULTILINE) == ["conda", "python", "pip", "pip"]
