"""Which rank read which sample, as numbers and as sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .words import all_ranks, capital, count, listed, number, small, these_ranks

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Run

Order = dict[int, list[int]]


@dataclass(frozen=True)
class Reading:
    """The samples a run has read.

    Attributes
    ----------
    ranks : list of int
        All ranks of the run, also those that read nothing.
    orders : dict of dict of list of int
        For each epoch (None if the script did not say) and rank: the indices in the order of reading.
    size : int
        Samples in the dataset.
    size_known : bool
        False if the run did not record the size: then it is the highest index read + 1.
    batches : set of int
        The batch sizes that occurred (samples per record).
    whole : bool
        True if the run ended well, so that what is missing was left out on purpose.
    """

    ranks: list[int]
    orders: dict[Any, Order]
    size: int
    size_known: bool
    batches: set[int]
    whole: bool

    @classmethod
    def of(cls, run: Run, name: str | None = None) -> Reading:
        """Collect the ``samples`` of a run's records (only those called `name`, if given).

        Raises
        ------
        ValueError
            If there are none, if they are not lists of indices, or if they stand under several names and none is given.
        """
        rows = [row for row in run.records if "samples" in row]
        names = sorted({row["name"] for row in rows})
        if name is not None:
            rows = [row for row in rows if row["name"] == name]
        elif len(names) > 1:
            shown = listed([f'"{other}"' for other in names])
            raise ValueError(f'Samples were recorded under the names {shown}: choose one, as in name="{names[0]}".')
        if not rows:
            which = "no samples" if name is None else f'no samples under the name "{name}"'
            raise ValueError(
                f"This run recorded {which}. Add `record(samples=indices.tolist())` where a batch is read."
            )
        ranks = sorted({*range(run.nproc), *(row["rank"] for row in rows)})
        orders: dict[Any, Order] = {}
        epochs = {row.get("epoch") for row in rows}
        for epoch in sorted(epochs, key=lambda epoch: (epoch is not None, isinstance(epoch, str), epoch)):
            orders[epoch] = {rank: [] for rank in ranks}
        for row in rows:
            indices = row["samples"]
            if not isinstance(indices, list) or not all(type(i) is int and i >= 0 for i in indices):
                raise ValueError(f"samples must be a list of indices into the dataset, 0 or more; got {indices!r:.60}.")
            orders[row.get("epoch")][row["rank"]] += indices
        highest = max((i for row in rows for i in row["samples"]), default=-1) + 1
        if not highest:
            raise ValueError("This run recorded only empty lists of samples: no rank read any.")
        sizes = [row.get("dataset_size") for row in run.records]
        # beside a step, total counts steps
        sizes += [row.get("total") for row in rows if "step" not in row]
        sizes = [size for size in sizes if type(size) is int]
        known = bool(sizes) and max(sizes) >= highest
        return cls(
            ranks, orders, max(sizes) if known else highest, known, {len(row["samples"]) for row in rows}, run.ok
        )

    @property
    def epochs(self) -> list[Any]:
        """The epochs in order."""
        return list(self.orders)

    @property
    def rereads(self) -> bool:
        """True if a rank read a sample twice in an epoch, as happens where epochs are not told apart."""
        return any(len(set(row)) < len(row) for order in self.orders.values() for row in order.values())

    def counts(self, epoch: Any) -> Counter[int]:
        """How often each sample was read in an epoch, by all ranks together."""
        return Counter(i for indices in self.orders[epoch].values() for i in indices)

    def map_title(self) -> str:
        """What the picture of owners shows."""
        facts = [self.fact(epoch) for epoch in self.epochs]
        if len(facts) == 1:
            return capital(facts[0])
        if len(set(facts)) == 1:
            return f"{self._orders_alike()}; in each, {small(facts[0])}"
        if len(facts) == 2:
            return "; ".join(f"{self.called(e)}: {small(fact)}" for e, fact in zip(self.epochs, facts, strict=True))
        return f"{self._orders_alike()}; the last one: {small(facts[-1])}"

    def order_title(self) -> str:
        """What the picture of orders shows."""
        ascending = all(row == sorted(row) for order in self.orders.values() for row in order.values())
        if len(self.orders) > 1:
            return self._orders_alike("ascending " if ascending else "shuffled " if self._none_ascending() else "")
        longest = max(self.orders[self.epochs[0]].values(), key=len)
        how = "in ascending order" if ascending else "in shuffled order" if self._none_ascending() else "in some order"
        who = capital(all_ranks(len(self.ranks)))
        return f"{who} {'reads' if len(self.ranks) == 1 else 'read'} {how}, up to {count(len(longest), 'sample')} each"

    def called(self, epoch: Any) -> str:
        """The name of an epoch in a picture."""
        return "no epoch given" if epoch is None else f"epoch {epoch}"

    def _none_ascending(self) -> bool:
        rows = [row for order in self.orders.values() for row in order.values() if len(row) > 1]
        return bool(rows) and all(row != sorted(row) for row in rows)

    def _orders_alike(self, kind: str = "") -> str:
        orders = list(self.orders.values())
        different = sum(order not in orders[:i] for i, order in enumerate(orders))
        epochs = f"{number(len(orders))} epochs"
        if different == 1:
            return f"{epochs}, the same {kind}order"
        if different == len(orders):
            return f"{epochs}, {number(different).lower()} different {kind}orders"
        return f"{epochs}, but only {different} different {kind}orders"

    def fact(self, epoch: Any) -> str:
        """One sentence about who read what in an epoch, true for these data."""
        order, size = self.orders[epoch], self.size
        readers = [rank for rank in self.ranks if order[rank]]
        counts = self.counts(epoch)
        world = len(self.ranks)
        if not readers:
            return "no rank read a sample"
        everything = list(range(size))
        if world > 1 and all(sorted(order[rank]) == everything for rank in self.ranks):
            work = "twice the work" if world == 2 else f"{world} times the work"
            samples = "the only sample" if size == 1 else f"all {size} samples"
            return f"{all_ranks(world)} read {samples}: {work}, the same epoch"
        again = [i for i, times in counts.items() if times > 1]
        missing = size - len(counts)
        if not again and not missing:
            if len(readers) == 1:
                idle = [rank for rank in self.ranks if not order[rank]]
                rest = f", {these_ranks(idle)} read{'s' if len(idle) == 1 else ''} none" if idle else ""
                return f"rank {readers[0]} reads every one of the {size} samples once{rest}"
            return f"every sample once, {self._layout(order)}: {self._shares(order)}"
        parts = []
        if again:
            is_are = "is" if len(again) == 1 else "are"
            times = {counts[i] for i in again}
            often = "twice" if times == {2} else f"{times.pop()} times" if len(times) == 1 else "more than once"
            why = f": padding, so that {all_ranks(world)} read {len(order[self.ranks[0]])}"
            parts.append(f"{count(len(again), 'sample')} {is_are} read {often}{why if self._padded(order) else ''}")
        if missing > size / 2:
            parts.append(f"only {len(counts)} of {size} samples are read")
        elif missing:
            is_are = "is" if missing == 1 else "are"
            why = ": drop_last" if not again and self._dropped(order, missing) else f" (of {size})"
            parts.append(f"{count(missing, 'sample')} {is_are} never read{why}")
        lengths = [len(order[rank]) for rank in self.ranks]
        if len(set(lengths)) > 1 and world <= 4:
            parts.append(listed([f"rank {rank} reads {len(order[rank])}" for rank in self.ranks]))
        return "; ".join(parts)

    def _layout(self, order: Order) -> str:
        rows = [order[rank] for rank in self.ranks]
        if all(row == list(range(i, self.size, len(rows))) for i, row in enumerate(rows)):
            return "strided over the ranks"
        if all(row == list(range(row[0], row[0] + len(row))) for row in rows if row):
            return "one block for each rank"
        if any(row != sorted(row) for row in rows):
            return "shuffled over the ranks"
        return "divided among the ranks"

    def _shares(self, order: Order) -> str:
        lengths = [len(row) for row in order.values()]
        if len(set(lengths)) == 1:
            return f"{lengths[0]} of {self.size} each"
        return f"{min(lengths)} to {max(lengths)} of {self.size} each"

    def _padded(self, order: Order) -> bool:
        """True if the repeated reads are DistributedSampler's: the list goes round the ranks and begins again."""
        rows = [order[rank] for rank in self.ranks]
        if len({len(row) for row in rows}) != 1 or len(rows[0]) != -(-self.size // len(rows)):
            return False
        dealt = [i for turn in zip(*rows, strict=True) for i in turn]
        start = dealt[: self.size]
        return len(set(start)) == self.size and dealt == (start * len(rows))[: len(dealt)]

    def _dropped(self, order: Order, missing: int) -> bool:
        """True if the missing samples are what drop_last leaves over, in the sampler or in the loader."""
        lengths = {len(row) for row in order.values()}
        if not self.whole or len(lengths) != 1:
            return False
        length, world = lengths.pop(), len(self.ranks)
        by_sampler = length == self.size // world and missing == self.size % world
        batch = max(self.batches)
        shares = (self.size // world, -(-self.size // world))
        by_loader = self.batches == {batch} and any(length == share // batch * batch for share in shares)
        return by_sampler or by_loader
