"""When DistributedDataParallel's buckets of gradients are all-reduced."""
# no `from __future__ import annotations`: DDP reads the hook's annotations and refuses strings

import time
from typing import Any

from ddp_lesson.rank import cuda
from ddp_lesson.rank.records import lines
from ddp_lesson.rank.spans import write


def record_communication(ddp_model: Any) -> None:
    """Record a span "all-reduce" for every bucket of gradients, from when it is ready until its mean is there.

    Registers a communication hook that does what DDP does without one: it divides the gradients by the number of ranks
    and sums them over the model's process group. Each span carries `bucket` (its index), `bytes`, and `step`, which
    counts the backward passes that communicate, from 0. Without a run directory nothing is registered.

    A model can have only one hook, and DDP then no longer divides itself: with
    ``Join(…, divide_by_initial_world_size=False)`` leave this out.

    Parameters
    ----------
    ddp_model : torch.nn.parallel.DistributedDataParallel
        Before its first backward pass.

    Raises
    ------
    TypeError
        If it is not wrapped in DistributedDataParallel.
    RuntimeError
        From DDP, if the model has a hook already.
    """
    if lines() is None:
        return
    if not hasattr(ddp_model, "reducer"):
        raise TypeError(
            f"record_communication wants a model wrapped in DistributedDataParallel, not a {type(ddp_model).__name__}"
        )
    ddp_model.register_comm_hook(_State(ddp_model.process_group), _all_reduce)


class _State:
    """The process group of a hook and its count of backward passes."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.step = -1

    def __reduce__(self) -> tuple[type, tuple[None]]:
        # a model stays picklable: like DDP itself, the copy uses the default group
        return _State, (None,)


def _all_reduce(state, bucket):
    import torch
    import torch.distributed as dist

    group = dist.group.WORLD if state.group is None else state.group
    if bucket.index() == 0:
        state.step += 1
    gradients = bucket.buffer()
    rest = f',"bucket":{bucket.index()},"bytes":{gradients.numel() * gradients.element_size()},"step":{state.step}'
    target = lines()
    mark = cuda.mark(torch) if gradients.is_cuda else None
    start = time.monotonic_ns()
    gradients.mul_(1 / group.size())  # as DDP does itself: a division can differ in the last bit
    future = dist.all_reduce(gradients, group=group, async_op=True).get_future()

    def mean(future):
        # on CUDA this runs when the work is queued, on a stream that waits for it, so that the end can be marked there
        end = time.monotonic_ns()
        failed = ""
        try:
            return future.value()[0]
        except BaseException:
            failed = ',"failed":true'
            raise
        finally:
            if target is not None:
                write(target, "all-reduce", start, end, failed + rest, mark)

    return future.then(mean)
