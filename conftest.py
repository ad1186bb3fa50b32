"""For every test, the notebooks' cells included: outputs that do not depend on time, and this Python's own programs."""

import os
import sys
from pathlib import Path

os.environ["DDP_LESSON_LIVE"] = "0"
# Two tests share the cores: a thread that waits for others must not spin meanwhile.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
