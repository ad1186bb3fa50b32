"""Executes notebooks in place, as they are committed: python tools/execute.py [notebook …]"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]


def execute(path: Path) -> None:
    """Run every cell in a fresh kernel and store what it shows."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    # Widget state would show "Error displaying widget" in a trusted notebook; versions differ between machines.
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, path)


def main() -> None:
    """Execute the notebooks that are named, or all of them."""
    os.environ["DDP_LESSON_LIVE"] = "0"
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    named = [Path(name).resolve() for name in sys.argv[1:]]
    for path in named or sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb")):
        print(path.name, flush=True)
        execute(path)


if __name__ == "__main__":
    main()
