"""Says everything that a launch decides about a process, as JSON on one line."""

import gc
import json
import locale
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import warnings

import numpy
import torch

main = sys.modules["__main__"]
handlers = {}
for number in sorted(signal.valid_signals()):
    handler = signal.getsignal(number)
    handlers[signal.Signals(number).name if number in list(signal.Signals) else str(int(number))] = str(
        getattr(handler, "__name__", handler)
    )
print(
    json.dumps(
        {
            "env": dict(os.environ),
            "argv": sys.argv,
            "orig_argv": sys.orig_argv,
            "path": sys.path,
            "cwd": os.getcwd(),
            "executable": sys.executable,
            "flags": str(sys.flags),
            "name": __name__,
            "file": __file__,
            "main": sorted(name for name in vars(main) if name.startswith("__")),
            "main_values": {k: str(vars(main)[k]) for k in ("__doc__", "__package__", "__spec__", "__cached__")},
            "main_is_this": vars(main) is globals(),
            "handlers": handlers,
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            "threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
            "python_threads": [threading.current_thread().name, threading.active_count()],
            "process": [
                multiprocessing.current_process().name,
                multiprocessing.parent_process() is None,
                multiprocessing.current_process().daemon,
                multiprocessing.get_start_method(),
            ],
            "leads_session": os.getsid(0) == os.getpid() == os.getpgid(0),
            "stdin": [sys.stdin.read(), sys.stdin.encoding, sys.stdin.name, sys.stdin.mode],
            "stdout": [
                sys.stdout.encoding,
                sys.stdout.errors,
                sys.stdout.write_through,
                sys.stdout.line_buffering,
                sys.stdout.name,
                sys.stdout.mode,
                type(sys.stdout.buffer).__name__,
            ],
            "stderr": [sys.stderr.encoding, sys.stderr.errors, sys.stderr.line_buffering, sys.stderr.name],
            "umask": os.umask(0o022),
            "nice": os.nice(0),
            "open_files": sorted(int(name) for name in os.listdir("/dev/fd"))[:-1],
            "grad": torch.is_grad_enabled(),
            "dtype": str(torch.get_default_dtype()),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "faulthandler": __import__("faulthandler").is_enabled(),
            "excepthook": sys.excepthook is sys.__excepthook__,
            "recursion": sys.getrecursionlimit(),
            "random": [random.random(), float(numpy.random.rand()), torch.rand(1).item(), torch.initial_seed()],
            "cuda_seed_queue": len(torch.cuda._queued_calls),
            "cuda_is_initialized": torch.cuda.is_initialized(),
            "logging": [str(logging.getLogger().handlers), logging.getLogger().level],
            "warnings": sorted(map(str, warnings.filters)),
            "gc": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
            "locale": locale.setlocale(locale.LC_ALL),
            "limits": [resource.getrlimit(which) for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
            "hooks": [threading.excepthook is threading.__excepthook__, sys.unraisablehook is sys.__unraisablehook__],
            "trace": [sys.gettrace(), sys.getprofile(), sys.getswitchinterval()],
            "import": [str(finder) for finder in sys.meta_path],
            "precision": torch.get_float32_matmul_precision(),
        }
    )
)
