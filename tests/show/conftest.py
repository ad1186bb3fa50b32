"""Real runs, made once, for every test that looks at them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ddp_lesson.launch import Run, torchrun
from ddp_lesson.launch.client import pool

SCRIPTS = Path(__file__).parent / "scripts"


def write_info(path: Path, nproc: int) -> Run:
    """Make `path` a run directory."""
    path.mkdir(parents=True, exist_ok=True)
    info = {"command": "torchrun work.py", "script": "work.py", "nproc": nproc, "returncode": 0, "warm": False}
    (path / "run.json").write_text(json.dumps(info), encoding="utf-8")
    return Run.load(path)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """Real runs of two ranks.

    "digits" has trained two epochs; in "late" rank 1 is late; "one-bucket" has one bucket; in "failed" rank 1 raises.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDP_LESSON_HOME", str(tmp_path_factory.mktemp("home")))
        trained = torchrun(SCRIPTS / "train.py", nproc_per_node=2, timeout=60)
        failed = torchrun(SCRIPTS / "fail.py", nproc_per_node=2, timeout=60)
    pool.close()
    assert trained.ok, trained.launcher_log + trained.ranks[0].stderr
    parts = {name: write_info(trained.path / name, 2) for name in ("late", "one-bucket")}
    yield {"digits": trained, **parts, "failed": failed}


@pytest.fixture(scope="session")
def clean() -> Callable[[Figure], None]:
    """A function that finds texts which are cut off or lie on another."""
    return check_texts


def check_texts(fig: Figure) -> None:
    renderer = fig.canvas.get_renderer()
    fig.draw(renderer)
    boxes: list[tuple[str, Bbox]] = []
    for text in _texts(fig):
        name = text.get_text()
        if not name.strip() or not text.get_visible():
            continue
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.x1 <= fig.bbox.x1 and box.y0 >= 0 and box.y1 <= fig.bbox.y1, f"cut off: {name}"
        for other, other_box in boxes:
            assert not box.padded(-1).overlaps(other_box.padded(-1)), f"{name!r} lies on {other!r}"
        boxes.append((name, box))


def _texts(fig: Figure) -> Iterator[Text]:
    yield from fig.texts
    for legend in fig.legends:
        yield from legend.get_texts()
    for ax in fig.axes:
        if ax.get_visible():
            yield from (*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label)
            for axis in (ax.xaxis, ax.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                yield from (tick.label1 for tick in ticks)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """A function that lets each rank in turn record something, in a forked process of its own."""
    number = iter(range(1000))

    def make(world: int, work: Callable[[int], None]) -> Run:
        run = write_info(tmp_path / f"run{next(number)}", world)
        monkeypatch.setenv("DDP_LESSON_RUN_DIR", str(run.path))
        monkeypatch.setenv("DDP_LESSON_T0_NS", str(time.monotonic_ns()))
        for rank in range(world):
            monkeypatch.setenv("RANK", str(rank))
            child = os.fork()
            if child == 0:
                # never back into pytest
                try:
                    work(rank)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return run

    return make


@pytest.fixture
def dealt(recorded: Callable[..., Run]) -> Callable[..., Run]:
    """A function that lets torch's own sampler and loader deal `size` samples to `world` ranks."""
    from torch.utils.data import DataLoader, DistributedSampler

    from ddp_lesson.rank import record

    def make(
        size: int, world: int, epochs: int = 1, *, sampler: bool = True, set_epoch: bool = True, batch: int = 4,
        known: bool = True, loader_drop_last: bool = False, **options: bool,
    ) -> Run:  # fmt: skip
        def work(rank: int) -> None:
            data = list(range(size))
            dealer = DistributedSampler(data, world, rank, **options) if sampler else None
            loader = DataLoader(data, batch_size=batch, sampler=dealer, drop_last=loader_drop_last)
            if known:
                record(dataset_size=size)
            for epoch in range(epochs):
                if dealer and set_epoch:
                    dealer.set_epoch(epoch)
                for indices in loader:
                    record(samples=indices.tolist(), **({"epoch": epoch} if epochs > 1 else {}))

        return recorded(world, work)

    return make
