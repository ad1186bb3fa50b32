"""What a script may import: `record`, `span`, `MemoryMeter` and `record_communication`.

Without a run directory (``DDP_LESSON_RUN_DIR``, which the launcher sets) nothing is written, so a script runs unchanged
under plain torchrun. Importing this does not import torch.
"""

from ddp_lesson.rank.communication import record_communication
from ddp_lesson.rank.memory import MemoryMeter
from ddp_lesson.rank.records import record
from ddp_lesson.rank.spans import span

__all__ = ["MemoryMeter", "record", "record_communication", "span"]
