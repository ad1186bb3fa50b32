"""Turns a forked child of the agent into what ``python -u script.py`` would be.

What cannot be made the same: modules that the agent has imported are in ``sys.modules``, all ranks share the agent's
string-hash seed (a set of strings has one order in all ranks), the parent is the agent instead of torchrun, ``/proc``
shows the agent's environment, a ``__del__`` of what is still there at the end does not run, and the process leaves
without tearing the interpreter down. `--cold` has none of these.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import io
import os
import random
import signal
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn

from . import tree


def fork() -> int:
    """As ``os.fork``; the child's signals wait until it has handlers of its own, for the agent's must not run in it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return pid


def enter(order: dict[str, Any], ready: int) -> NoReturn:
    """Become the rank that `order` describes, run its script, leave.

    Parameters
    ----------
    order : dict
        args (as of the python command: interpreter, -u, script, arguments), env, cwd, stdout, stderr, source (the
        file that holds the script's text), path (the rest of sys.path), finished (folder for the mark of the end).
    ready : int
        A file descriptor; closed once the process leads its own session and can be signalled as a group.
    """
    os.setsid()
    tree.die_with_parent()
    _reset_signals()
    _reset_files(order["stdout"], order["stderr"])
    os.close(ready)
    os.closerange(3, _most_files())
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    _reseed()
    code = _run(order)
    _leave(code, order.get("finished"))


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    # What Python itself sets when it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _reset_files(stdout: str, stderr: str) -> None:
    for number, (path, flags) in enumerate(
        ((os.devnull, os.O_RDONLY), (stdout, os.O_WRONLY | os.O_CREAT), (stderr, os.O_WRONLY | os.O_CREAT))
    ):
        if number == 2 and stderr == stdout:
            os.dup2(1, 2)  # one position in the file for both, or each would write over the other
            continue
        opened = os.open(path, flags, 0o666)
        os.dup2(opened, number)
        if opened > 2:
            os.close(opened)
    # As `python -u` makes them: no buffer between print and the file.
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    raw = [io.FileIO(number, mode, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w"))]
    for stream, name in zip(raw, ("<stdin>", "<stdout>", "<stderr>"), strict=True):
        stream.name = name
    sys.stdin = io.TextIOWrapper(io.BufferedReader(raw[0]), encoding, sys.stdin.errors)
    sys.stdout = io.TextIOWrapper(raw[1], encoding, errors, write_through=True)
    sys.stderr = io.TextIOWrapper(raw[2], encoding, "backslashreplace", write_through=True)
    sys.stdin.mode, sys.stdout.mode, sys.stderr.mode = "r", "w", "w"
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def _most_files() -> int:
    return max((int(name) for name in os.listdir("/dev/fd")), default=255) + 1


def _reseed() -> None:
    # A forked generator is a copy: without this, all ranks would draw the same numbers and hide a missing seed.
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()  # the CPU's; CUDA's starts from a fixed seed, cold too


def _run(order: dict[str, Any]) -> int:
    script, arguments = order["args"][2], order["args"][3:]
    file = os.path.abspath(script)
    sys.argv = [script, *arguments]
    sys.orig_argv = list(order["args"])
    sys.path[:] = order["path"] if sys.flags.safe_path else [os.path.dirname(os.path.realpath(file)), *order["path"]]
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __loader__=SourceFileLoader("__main__", file),
        __spec__=None,
        __package__=None,
        __annotations__={},
        __builtins__=builtins,
        __file__=file,
        __cached__=None,
    )
    sys.modules["__main__"] = main
    try:
        # The run directory's copy: another notebook that writes the same script meanwhile does not change this run.
        source = Path(order.get("source") or file).read_bytes()
    except OSError as error:
        print(f"{sys.executable}: can't open file {file!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        return 2
    ended: BaseException | None = None
    try:
        exec(compile(source, file, "exec", dont_inherit=True), main.__dict__)
    except BaseException as error:
        ended = error
    # Outside of the except block: a hook of the script's own must not find this exception being handled.
    return _code(ended)


def _code(ended: BaseException | None) -> int:
    """The exit code after an exception, which is shown where Python would show it."""
    if ended is None:
        return 0
    if isinstance(ended, SystemExit):
        return _exit_code(ended)
    try:
        _show(ended)
    except SystemExit as stop:
        return _exit_code(stop)
    return -signal.SIGINT if type(ended) is KeyboardInterrupt else 1


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    # Without the frame of this file; the traceback begins in the script, as it does cold.
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    if isinstance(error, SyntaxError) and trace is None:
        error.__traceback__ = None
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except SystemExit:
        raise
    except BaseException as second:
        print("Error in sys.excepthook:", file=sys.stderr)
        frames = second.__traceback__.tb_next
        sys.__excepthook__(type(second), second.with_traceback(frames), frames)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)


def _leave(code: int, finished: str | None) -> NoReturn:
    import atexit
    import threading

    try:
        threading._shutdown()  # waits for the script's own threads, as the interpreter does
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    atexit._run_exitfuncs()
    if finished:
        # From here on the rank only has to leave; exit handlers took as long as they do cold.
        try:
            Path(finished, str(os.getpid())).write_text(str(code))
        except OSError:
            pass
    # Tearing the interpreter down can hang or abort in gloo's threads (a DDP object freed after
    # destroy_process_group), so files are flushed here and the process leaves at once.
    # type(): isinstance would ask the object itself, and a weak proxy whose object is gone answers with an error.
    files = [thing for thing in gc.get_objects() if issubclass(type(thing), io.IOBase)]
    for file in files:
        try:
            if not file.closed and file.writable():
                file.flush()
        except Exception:
            if file is sys.stdout or file is sys.stderr:
                code = code or 120
    for file in files:
        if type(file).__module__ != "_io":  # such as gzip's, which write their last bytes when closed
            with contextlib.suppress(Exception):
                file.close()
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)
