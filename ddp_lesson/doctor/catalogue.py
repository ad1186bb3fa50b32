"""What an exception's text says about its cause, as data: slug, marker, advice, lesson step."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One pitfall that an error text identifies."""

    slug: str
    marker: str
    advice: str
    step: int


CATALOGUE = (
    Entry("sampler_and_shuffle", r"sampler option is mutually exclusive with shuffle",
          "The sampler shuffles already: leave shuffle out of DataLoader.", 4),
    Entry("batchnorm_batch_of_one", r"Expected more than 1 value per channel when training",
          "The last batch has one sample: drop_last=True, or another batch size.", 4),
    Entry("env_rank_not_set", r"environment variable \w+ expected, but not set|KeyError: '(LOCAL_)?RANK'",
          "Only torchrun sets these variables: start the script with torchrun.", 2),
    Entry("process_group_missing", r"Default process group has not been initialized",
          "Call torch.distributed.init_process_group before this line.", 2),
    Entry("process_group_initialised_twice", r"trying to initialize the default process group twice",
          "Call init_process_group once per process.", 2),
    Entry("nccl_not_built_in", r"Distributed package doesn't have NCCL built in",
          "This torch has no NCCL: use the gloo backend.", 2),
    Entry("no_gpu_visible_nccl", r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",
          "NCCL needs a GPU that this process can see: use gloo, or look at CUDA_VISIBLE_DEVICES.", 1),
    Entry("cpu_only_torch_build", r"Torch not compiled with CUDA enabled",
          "This torch is built for the CPU: choose the device with torch.accelerator.", 1),
    Entry("invalid_device_ordinal", r"invalid device ordinal",
          "There are more ranks than GPUs, or the global rank was used as a device.", 3),
    Entry("port_in_use", r"EADDRINUSE|[Aa]ddress already in use",
          "Another run holds the port: leave --master-port out, torchrun finds a free one.", 6),
    Entry("local_rank_argument", r"unrecognized arguments: --local[-_]rank",
          'torchrun sets the environment instead: read os.environ["LOCAL_RANK"].', 6),
    Entry("unused_parameters", r"Expected to have finished reduction in the prior iteration",
          "A parameter got no gradient: use every parameter in the loss, or find_unused_parameters=True.", 5),
    Entry("attribute_behind_ddp_wrapper", r"'DistributedDataParallel' object has no attribute",
          "Your model is inside: write model.module.", 5),
    Entry("oom_batch_too_large", r"out of memory",
          "The batch is per process: a smaller one, accumulation, checkpointing or sharding.", 7),
    Entry("fullwidth_punctuation", r"invalid character '[^']' \(U\+FF",
          "A character was pasted from a web page: type it again.", 3),
    Entry("ordinary_missing_package", r"ModuleNotFoundError: No module named",
          "Install the package in this environment; it is not a distributed fault.", 0),
    Entry("ordinary_shape_error", r"mat1 and mat2 shapes cannot be multiplied|size mismatch, m1|must match the size",
          "The shapes do not fit; it would fail in one process, too.", 0),
    Entry("rank_missing_at_barrier", r"Timed out waiting \d+ms for (recv|send) operation",
          "One rank did not come to the collective: look at what the others do.", 2),
)  # fmt: skip


def match(text: str) -> Entry | None:
    """The first entry whose marker is in the text."""
    return next((entry for entry in CATALOGUE if re.search(entry.marker, text)), None)
