from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ddp_lesson.launch.run import Run
from ddp_lesson.rank import record
from ddp_lesson.show import plot_samples
from ddp_lesson.show.colours import RANKS


def title(fig: Figure) -> str:
    return fig.get_suptitle().replace("\n", " ")


def cells(fig: Figure, colour: str) -> int:
    """Filled rectangles of a colour."""
    rgb = tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    patches = [patch for ax in fig.axes for patch in ax.patches if isinstance(patch, Rectangle)]
    return sum(patch.get_facecolor()[:3] == pytest.approx(rgb) for patch in patches)


def notes(fig: Figure) -> str:
    return " ".join(text.get_text().replace("\n", " ") for text in fig.texts[1:])


SITUATIONS = [
    ({"size": 12, "world": 2, "sampler": False}, "Both ranks read all 12 samples: twice the work, the same epoch"),
    ({"size": 12, "world": 4, "sampler": False}, "All 4 ranks read all 12 samples: 4 times the work, the same epoch"),
    ({"size": 1797, "world": 2, "sampler": False}, "Both ranks read all 1797 samples: twice the work, the same epoch"),
    ({"size": 12, "world": 2, "shuffle": False}, "Every sample once, strided over the ranks: 6 of 12 each"),
    ({"size": 12, "world": 2}, "Every sample once, shuffled over the ranks: 6 of 12 each"),
    ({"size": 12, "world": 1}, "Rank 0 reads every one of the 12 samples once"),
    ({"size": 10, "world": 4, "shuffle": False}, "2 samples are read twice: padding, so that all 4 ranks read 3"),
    ({"size": 10, "world": 4}, "2 samples are read twice: padding, so that all 4 ranks read 3"),
    ({"size": 1797, "world": 8}, "3 samples are read twice: padding, so that all 8 ranks read 225"),
    ({"size": 2, "world": 5}, "2 samples are read more than once: padding, so that all 5 ranks read 1"),
    ({"size": 1, "world": 4}, "All 4 ranks read the only sample: 4 times the work, the same epoch"),
    ({"size": 11, "world": 4, "drop_last": True}, "3 samples are never read: drop_last"),
    ({"size": 1797, "world": 4, "drop_last": True}, "1 sample is never read: drop_last"),
    ({"size": 22, "world": 2, "batch": 4, "loader_drop_last": True}, "6 samples are never read: drop_last"),
    (
        {"size": 12, "world": 2, "epochs": 2, "shuffle": False},
        "Two epochs, the same order; in each, every sample once, strided over the ranks: 6 of 12 each",
    ),
    (
        {"size": 10, "world": 4, "epochs": 3},
        "Three epochs, three different orders; in each, 2 samples are read twice: padding, so that all 4 ranks read 3",
    ),
]


@pytest.mark.parametrize(("how", "sentence"), SITUATIONS, ids=[sentence for _, sentence in SITUATIONS])
def test_the_title_says_who_read_what(dealt, clean, how: dict, sentence: str) -> None:
    fig = plot_samples(dealt(**how))
    assert title(fig) == sentence
    clean(fig)


def test_every_read_is_a_cell_in_the_colour_of_its_rank_with_the_turn_in_it(dealt) -> None:
    fig = plot_samples(dealt(12, 2, shuffle=False))
    (ax,) = fig.axes
    assert [cells(fig, colour) for colour in RANKS[:3]] == [6, 6, 0]
    turns = {text.get_position(): text.get_text() for text in ax.texts}
    # (index, row): rank 1 reads index 3 as its second
    assert turns[(3, 1)] == "2" and len(turns) == 12
    assert ax.get_xlabel() == "index of the sample in the dataset"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]


def test_each_epoch_has_axes_of_its_own(dealt) -> None:
    fig = plot_samples(dealt(12, 2, epochs=3))
    assert [ax.get_ylabel() for ax in fig.axes] == ["epoch 0", "epoch 1", "epoch 2"]
    assert [len(ax.patches) for ax in fig.axes] == [12, 12, 12]


def test_samples_read_twice_carry_a_ring_and_not_only_a_colour(dealt) -> None:
    fig = plot_samples(dealt(10, 4, shuffle=False))
    ringed = [text.get_position()[0] for text in fig.axes[0].texts if text.get_bbox_patch() is not None]
    assert sorted(ringed) == [0, 0, 1, 1]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["read more than once"]


def test_samples_never_read_are_empty_outlines(dealt) -> None:
    fig = plot_samples(dealt(11, 4, shuffle=False, drop_last=True))
    empty = [patch for patch in fig.axes[0].patches if patch.get_facecolor() == (1, 1, 1, 1)]
    assert sorted({round(patch.get_x() + 0.46) for patch in empty}) == [8, 9, 10]
    assert all(patch.get_linewidth() > 1 and patch.get_edgecolor() != (1, 1, 1, 1) for patch in empty)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["never read"]


def test_a_large_dataset_is_one_mosaic_per_epoch(runs, clean) -> None:
    fig = plot_samples(runs["digits"])
    assert title(fig) == (
        "Two epochs, two different orders; in each, 1 sample is read twice: padding, so that both ranks read 899"
    )
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["epoch 0", "epoch 1"]
    for ax in fig.axes:
        image = ax.images[0].get_array()
        squares = image.reshape(-1, 3)[:1797]
        colours = {tuple(round(255 * value) for value in square) for square in squares}
        assert colours == {tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in RANKS[:2]}
        (rings,) = (found for found in ax.collections if isinstance(found, PathCollection))
        assert len(rings.get_offsets()) == 1
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["rank 0", "rank 1", "read more than once"]
    clean(fig)


def test_where_every_rank_reads_everything_each_has_a_mosaic(dealt, clean) -> None:
    fig = plot_samples(dealt(100, 3, sampler=False))
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["rank 0", "rank 1", "rank 2"]
    clean(fig)


def test_more_than_eight_ranks_have_a_second_sign(dealt, clean) -> None:
    small, large = dealt(40, 10, shuffle=False), dealt(400, 10, shuffle=False)
    hatches = [patch.get_hatch() for patch in plot_samples(small).axes[0].patches]
    assert hatches.count("////") == 8 and hatches.count("") == 32
    fig = plot_samples(large)
    dotted = [dots for dots in fig.axes[0].collections if len(dots.get_offsets()) == 40]
    assert len(dotted) == 2
    clean(fig)


def test_equal_orders_look_equal(dealt, clean) -> None:
    fig = plot_samples(dealt(1797, 2, epochs=2, set_epoch=False, batch=64), order=True)
    assert title(fig) == "Two epochs, the same shuffled order"
    (ax,) = fig.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        f"rank {rank}, epoch {epoch}" for rank in (0, 1) for epoch in (0, 1)
    ]
    rows = [[text.get_text() for text in ax.texts[20 * i : 20 * i + 20]] for i in range(4)]
    heights = [[round(patch.get_height(), 9) for patch in ax.patches[20 * i : 20 * i + 20]] for i in range(4)]
    assert rows[0] == rows[1] and rows[2] == rows[3] and rows[0] != rows[2]
    assert heights[0] == heights[1] and heights[2] == heights[3]
    assert "The first 20 of 899 reads of each rank." in notes(fig)
    clean(fig)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"epochs": 2}, "Two epochs, two different shuffled orders"),
        ({"epochs": 3, "shuffle": False}, "Three epochs, the same ascending order"),
        ({"epochs": 1}, "Both ranks read in shuffled order, up to 6 samples each"),
    ],
)
def test_the_title_of_orders_says_whether_they_are_the_same(dealt, clean, how: dict, sentence: str) -> None:
    fig = plot_samples(dealt(12, 2, **how), order=True)
    assert title(fig) == sentence
    clean(fig)


@pytest.mark.parametrize(
    ("world", "size", "epochs"),
    [(1, 12, 1), (1, 1797, 3), (2, 1797, 2), (4, 12, 3), (4, 1797, 1), (8, 12, 2), (8, 1797, 3)],
)
def test_no_text_is_cut_or_covered(dealt, clean, world: int, size: int, epochs: int) -> None:
    run = dealt(size, world, epochs, batch=64)
    clean(plot_samples(run))
    clean(plot_samples(run, order=True))


def test_without_dataset_size_the_small_print_says_what_was_taken(dealt) -> None:
    assert "dataset_size; taken: highest index + 1 = 12" in notes(plot_samples(dealt(12, 2, known=False)))
    assert "dataset_size" not in notes(plot_samples(dealt(12, 2)))


def test_total_beside_a_step_counts_steps_and_not_samples(recorded) -> None:
    run = recorded(2, lambda rank: record(samples=[rank], step=0, total=50))
    assert title(plot_samples(run)) == "Every sample once, strided over the ranks: 1 of 2 each"
    run = recorded(2, lambda rank: record(samples=[rank], total=50))
    assert title(plot_samples(run)) == "Only 2 of 50 samples are read"


def test_padding_is_not_claimed_for_other_repetitions(recorded) -> None:
    rows = [[1, 0, 2], [3, 4, 0]]  # padding would have repeated sample 1, the first of the list
    run = recorded(2, lambda rank: record(samples=rows[rank], dataset_size=5))
    assert title(plot_samples(run)) == "1 sample is read twice"
    run = recorded(2, lambda rank: record(samples=[rank, rank], dataset_size=2))
    assert title(plot_samples(run)) == "2 samples are read twice"
    assert "tell several epochs apart by record(epoch=…)" in notes(plot_samples(run))


def test_drop_last_is_not_claimed_for_a_run_that_failed(runs, clean) -> None:
    fig = plot_samples(runs["failed"])
    assert title(fig) == "2 samples are never read (of 6)"
    clean(fig)


def test_a_rank_that_reads_nothing_is_named(recorded) -> None:
    run = recorded(2, lambda rank: record(samples=[0, 1, 2] if rank == 0 else [], dataset_size=3))
    assert title(plot_samples(run)) == "Rank 0 reads every one of the 3 samples once, rank 1 reads none"


def test_unequal_shares_are_numbered(recorded) -> None:
    run = recorded(2, lambda rank: record(samples=[0, 1, 2, 3] if rank == 0 else [5], dataset_size=6))
    assert title(plot_samples(run)) == "1 sample is never read (of 6); rank 0 reads 4 and rank 1 reads 1"


def test_samples_under_several_names_must_be_chosen(recorded) -> None:
    def work(rank: int) -> None:
        record(samples=[rank], name="train")
        record(samples=[1 - rank], name="evaluate")

    run = recorded(2, work)
    with pytest.raises(ValueError, match=r'under the names "evaluate" and "train": choose one'):
        plot_samples(run)
    assert title(plot_samples(run, name="train")) == "Every sample once, strided over the ranks: 1 of 2 each"
    with pytest.raises(ValueError, match='no samples under the name "test"'):
        plot_samples(run, name="test")


@pytest.mark.parametrize("samples", [[[1, 2]], [0.5], "abc", [-1], [True]])
def test_samples_that_are_no_indices_are_refused(recorded, samples: object) -> None:
    run = recorded(1, lambda rank: record(samples=samples))
    with pytest.raises(ValueError, match="must be a list of indices into the dataset"):
        plot_samples(run)


def test_a_run_without_samples_is_told_how_to_record_them(recorded: Callable[..., Run]) -> None:
    with pytest.raises(ValueError, match=r"recorded no samples. Add `record\(samples="):
        plot_samples(recorded(2, lambda rank: record(loss=1.0)))
    with pytest.raises(ValueError, match="only empty lists"):
        plot_samples(recorded(2, lambda rank: record(samples=[])))
