"""The command line: ``python -m ddp_lesson run|preflight …``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

USAGE = """usage: python -m ddp_lesson COMMAND …

  run [options] script.py [arguments]   launch a script with torchrun; options are torchrun's own, and
                                        --timeout SECONDS, --cold, --json,
                                        --expect-failure (then a run that fails is right)
  preflight [--json]                    what this machine can do, and what is in the way
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0 = well, 1 = something failed or was found, 2 = bad usage."""
    words = sys.argv[1:] if argv is None else argv
    commands: dict[str, Callable[[list[str]], int]] = {"run": _run, "preflight": _preflight}
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if words else 2
    if words[0] not in commands:
        print(f"There is no command {words[0]}; there are: {', '.join(commands)}.", file=sys.stderr)
        return 2
    try:
        return commands[words[0]](words[1:])
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:  # whoever read the output has gone: … | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(words: list[str]) -> int:
    from .launch.api import Interrupted, launch
    from .launch.errors import LaunchError
    from .launch.follow import Printer
    from .launch.options import parse

    if words[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    try:
        options = parse(words)
        if options.script is None:
            raise LaunchError("Which script? For example: python -m ddp_lesson run --nproc-per-node 2 train.py")
        printer = None if options.json else Printer()
        try:
            run = launch(options, watch=printer)
        except Interrupted as stop:
            run = stop.run
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(_as_dict(run)))
    else:
        printer.finish(run)
    if run.ok and options.expect_failure:
        print("The run was expected to fail (--expect-failure), but every rank finished.", file=sys.stderr)
    return 0 if run.ok != options.expect_failure else 1


def _as_dict(run) -> dict:
    return {
        "ok": run.ok,
        "returncode": run.returncode,
        "command": run.command,
        "path": str(run.path),
        "wall_s": run.wall_s,
        "warm": run.warm,
        "notes": run.notes,
        "failure": vars(run.failure) if run.failure else None,
        "ranks": [{"rank": r.rank, "exitcode": r.exitcode, "stdout": r.stdout, "stderr": r.stderr} for r in run.ranks],
    }


def _preflight(words: list[str]) -> int:
    from .preflight import preflight

    if words not in ([], ["--json"]):
        print("usage: python -m ddp_lesson preflight [--json]", file=sys.stderr)
        return 2
    found = preflight()
    print(json.dumps(found.rows) if words else found)
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
