"""What the tests of real launches share: a folder of their own, and the proof that no process outlives them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import processes
import pytest
from kernels import Kernel

from ddp_lesson import Run, torchrun

os.environ[processes.MARK] = str(os.getpid())  # everything that a test starts inherits it


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project folder to work in; in the end, no process of a run may be left."""
    monkeypatch.setenv("DDP_LESSON_HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the same everywhere; GPUs have tests of their own
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    processes.assert_none_left()


@pytest.fixture
def background(home: Path) -> Iterator[Callable[..., Future[Run]]]:
    """As `torchrun`, but comes back at once with the future run."""
    with ThreadPoolExecutor(8) as threads:
        yield lambda *args, **options: threads.submit(torchrun, *args, **options)
        processes.end_strays()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A real kernel with the extension loaded, shared by a file's tests."""
    with Kernel(tmp_path_factory.mktemp("kernel")) as started:
        started.run("%load_ext ddp_lesson")
        yield started
    processes.assert_none_left()
