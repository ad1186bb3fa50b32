import os
import subprocess
import sys

ask = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'not set'))"
print("this rank:", os.environ.get("CUDA_VISIBLE_DEVICES", "not set"))
print("a process that it starts: ", end="")
subprocess.run([sys.executable, "-c", ask])
