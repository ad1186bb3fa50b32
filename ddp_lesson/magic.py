"""``%%torchrun``: writes the cell as a script, launches it on real ranks, shows what came of it."""

from __future__ import annotations

import os
import shlex
from typing import Any

from .launch import scripts
from .launch.api import Interrupted, launch
from .launch.client import pool
from .launch.errors import LaunchError
from .launch.options import Options, parse
from .launch.plan import can_fork, default_agent_env, require_torch
from .launch.run import Run


class RunFailed(RuntimeError):
    """A cell's run did not end as the cell expected; the result above it says how."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def load(shell: Any) -> None:
    """Register the magics and let an agent import torch in the background."""
    shell.register_magic_function(torchrun_cell, "line_cell", "torchrun")
    if can_fork():
        try:
            require_torch()
        except LaunchError as error:
            print(error)
        else:
            pool.start(default_agent_env())


def torchrun_cell(line: str, cell: str | None = None) -> None:
    """Write the cell into ddp_lesson/scripts/ and launch it with torchrun.

    %%torchrun [torchrun's options] [kit options] script.py [script arguments]

    Kit options: --timeout SECONDS, --expect-failure, --as NAME (where to put the Run; default: run), --cold.
    As a line magic it launches a script that is there already.
    """
    from IPython import get_ipython

    from .show import live

    options = _options(line)
    text, notes = None, []
    if cell is None:
        if options.script is None:
            raise LaunchError("Which script? Write, for example, %torchrun --nproc-per-node 2 train.py")
        written = scripts.scripts_folder() / options.script
        if not os.path.exists(options.script) and written.is_file():
            options.script = os.path.relpath(written)  # one that a cell has written
    else:
        scripts.checked(options.script)
        if not _readable(cell, options):
            return
        path, kept = scripts.write(options.script, cell)
        options.script = os.path.relpath(path)
        text = scripts.encoded(cell)
        if kept:
            notes.append(f"{path.name} had been edited outside this cell: kept as {kept.name}.")
    view = live.Live()
    interrupted = None
    try:
        run = launch(options, watch=view if live.enabled() else None, text=text, notes=notes)
    except Interrupted as stop:
        run, interrupted = stop.run, stop
    except LaunchError as error:
        raise LaunchError(" ".join([str(error), *notes])) from None
    get_ipython().user_ns[options.name] = run
    view.show(run._repr_mimebundle_())
    if interrupted is not None:
        raise interrupted from None
    _judge(run, options)


def _options(line: str) -> Options:
    try:
        return parse(shlex.split(line))
    except ValueError as error:
        if isinstance(error, LaunchError):
            raise
        raise LaunchError(f"The %%torchrun line cannot be read: {error}.") from None


def _readable(cell: str, options: Options) -> bool:
    """True when the cell can be launched. A syntax error that was expected is shown, not raised."""
    try:
        scripts.check_source(cell, str(options.script))
    except LaunchError as error:
        if not options.expect_failure or not cell.strip():
            raise
        print(error)
        return False
    return True


def _judge(run: Run, options: Options) -> None:
    if options.expect_failure and run.ok:
        raise RunFailed("This run was expected to fail (--expect-failure), but every rank finished.")
    if not options.expect_failure and not run.ok:
        failure = run.failure
        who = f"rank {failure.rank}" if failure and failure.rank is not None else "the run"
        what = "did not end before its deadline" if run.timed_out else "failed"
        raise RunFailed(f"{run.script}: {who} {what}. (--expect-failure lets a notebook go on.)")
