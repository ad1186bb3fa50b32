import os

from ddp_lesson.rank import record

names = "WORLD_SIZE LOCAL_WORLD_SIZE RANK LOCAL_RANK GROUP_RANK ROLE_NAME MASTER_PORT OMP_NUM_THREADS"
names += " TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RESTART_COUNT"
record(**{name: os.environ.get(name) for name in names.split()})
