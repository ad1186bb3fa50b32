from __future__ import annotations

import io
import itertools
import subprocess
import sys

import matplotlib as mpl
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from PIL import Image

from ddp_lesson import show
from ddp_lesson.show.colours import PHASES, RANKS, phase_colours, rank_colour, rank_dash, rank_hatch

# Machado, Oliveira and Fernandes (2009): the three dichromacies, on linear RGB
VISION = {
    "full": np.eye(3),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "tritan": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


def lab(colour: str, vision: str = "full") -> np.ndarray:
    """CIE Lab of a colour as somebody sees it."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(VISION[vision] @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = (
        np.cbrt(v) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in xyz / np.array([0.9505, 1, 1.089])
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_phases_are_told_apart_with_any_colour_vision(vision: str) -> None:
    for one, other in itertools.combinations(PHASES.values(), 2):
        assert np.linalg.norm(lab(one, vision) - lab(other, vision)) > 25


def test_no_phase_looks_like_a_rank() -> None:
    for phase, rank in itertools.product(PHASES.values(), RANKS):
        assert np.linalg.norm(lab(phase) - lab(rank)) > 25


def test_colours_repeat_after_eight_ranks_with_another_sign() -> None:
    looks = [(rank_colour(rank), rank_hatch(rank), rank_dash(rank)) for rank in range(32)]
    assert len(set(looks)) == 32
    assert [rank_colour(rank) for rank in range(8)] == list(RANKS)


def test_unknown_phases_come_after_the_known_with_colours_of_their_own() -> None:
    colours = phase_colours(["zip", "backward", "data", "eval"])
    assert list(colours) == ["data", "backward", "eval", "zip"]
    assert len(set(colours.values())) == 4


def pictures(run) -> list:
    return [
        show.plot_timeline(run),
        show.plot_samples(run),
        show.plot_samples(run, order=True),
        show.plot(run, "loss"),
        show.plot_memory(run),
    ]


def test_a_picture_is_an_opaque_white_card_of_notebook_width(runs) -> None:
    for fig in pictures(runs["digits"]):
        image = Image.open(io.BytesIO(fig._repr_png_()))
        assert image.size == (900, round(100 * fig.get_figheight()))
        alpha = np.asarray(image.convert("RGBA"))[..., 3]
        assert alpha.min() == 255
        assert image.convert("RGB").getpixel((1, 1)) == (255, 255, 255)


def test_matplotlibs_own_state_is_neither_used_nor_changed(runs) -> None:
    fresh = show.plot(runs["digits"])._repr_png_()
    with mpl.rc_context({"axes.facecolor": "black", "text.color": "white", "font.size": 30, "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        assert show.plot(runs["digits"])._repr_png_() == fresh
        assert dict(mpl.rcParams) == before


def test_matplotlib_is_imported_only_when_a_plot_is_made_and_pyplot_never(runs) -> None:
    code = (
        "import sys\n"
        "from ddp_lesson import show\n"
        "from ddp_lesson.launch.run import Run\n"
        f"run = Run.load({str(runs['digits'].path)!r})\n"
        "show.table(run)._repr_html_()\n"
        "print('matplotlib' in sys.modules, 'torch' in sys.modules)\n"
        "run.plot_timeline()._repr_png_(), run.plot_samples()._repr_png_()\n"
        "print('matplotlib.pyplot' in sys.modules, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False"] * 4


def test_a_notebook_shows_a_returned_figure_once(runs, tmp_path) -> None:
    cells = [
        f"from ddp_lesson.launch.run import Run\nrun = Run.load({str(runs['digits'].path)!r})",
        "run.plot_samples()",
        "fig = run.plot('loss')",
        "import matplotlib.pyplot as plt\nplt.style.use('dark_background')",
        "run.plot_memory()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert [len(found) for found in outputs] == [0, 1, 0, 0, 1]
    for (found,) in (outputs[1], outputs[4]):
        assert set(found["data"]) == {"image/png", "text/plain"}
        assert found["data"]["text/plain"].startswith("<Figure size 900x")
