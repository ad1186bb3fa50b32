"""Reads a torchrun command line: the kit's own options, torchrun's options, the script, its arguments."""

from __future__ import annotations

import difflib
import keyword
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .errors import LaunchError

# torchrun's options, held equal to the installed torch's own parser by a test.
WITH_VALUE = frozenset(
    """--nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --max-restarts --monitor-interval
    --start-method --event-log-handler --role --log-dir -r --redirects -t --tee --local-ranks-filter
    --duplicate-stdout-filters --duplicate-stderr-filters --node-rank --master-addr --master-port --local-addr
    --logs-specs --numa-binding --signals-to-handle --shutdown-timeout""".split()
)
FLAGS = frozenset("--standalone -m --module --no-python --run-path --virtual-local-rank".split())
KIT_WITH_VALUE = frozenset(["--timeout", "--as"])
KIT_FLAGS = frozenset(["--expect-failure", "--cold", "--json"])

# What the kit cannot hand over, and why.
REFUSED = {
    "--log-dir": "the kit keeps every rank's output in the run directory",
    "-r": "the kit keeps every rank's output in a file of its own already",
    "--redirects": "the kit keeps every rank's output in a file of its own already",
    "-m": "give the script's file instead of a module",
    "--module": "give the script's file instead of a module",
    "--no-python": "the kit runs Python scripts",
    "--run-path": "the kit decides how the script is entered",
    "--logs-specs": "the kit reads torchrun's default log files",
}


@dataclass
class Options:
    """A command line, taken apart.

    Attributes
    ----------
    torchrun : list of str
        torchrun's own options as they were typed, without the number of ranks.
    nproc : int or str or None
        Ranks on this node: a number, ``"gpu"``, ``"cpu"`` or ``"auto"``; None when it was not said.
    script, args : str or None, list of str
        The script and its arguments. `script` is None when there was none.
    timeout : float or None
        Seconds until the run is ended.
    """

    torchrun: list[str] = field(default_factory=list)
    nproc: int | str | None = None
    script: str | None = None
    args: list[str] = field(default_factory=list)
    timeout: float | None = None
    expect_failure: bool = False
    name: str = "run"
    cold: bool = False
    json: bool = False

    def value(self, option: str) -> str | None:
        """The last value given for one of torchrun's options, or None."""
        found = None
        for position, token in enumerate(self.torchrun):
            if token == option:
                found = self.torchrun[position + 1]
        return found

    @property
    def nodes(self) -> int:
        """The largest number of nodes that the run may have."""
        largest = (self.value("--nnodes") or "1").rpartition(":")[2]
        return int(largest) if largest.isdigit() else 1


def parse(tokens: Sequence[str]) -> Options:
    """Take a command line apart.

    Parameters
    ----------
    tokens : sequence of str
        Everything after ``torchrun``.

    Raises
    ------
    LaunchError
        For an unknown option, a missing value or a value that makes no sense.
    """
    found = Options()
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if not token.startswith("-") or token == "-":
            found.script, found.args = token, rest
            break
        option, value = _split(token)
        if option in KIT_FLAGS or option in FLAGS:
            if value is not None:
                raise LaunchError(f"{option} takes no value, but was given {value!r}.")
        elif option in KIT_WITH_VALUE or option in WITH_VALUE:
            if value is None:
                if not rest:
                    raise LaunchError(f"{option} needs a value after it.")
                value = rest.pop(0)
        else:
            raise LaunchError(_unknown(option))
        _take(found, option, value)
    return found


def rank_count(value: object) -> int | str:
    """Check a number of ranks.

    Raises
    ------
    LaunchError
        When it is neither a whole number from 1 on nor one of torchrun's words gpu, cpu, auto.
    """
    if value in ("gpu", "cpu", "auto"):
        return value  # type: ignore[return-value]
    text = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d+", text):
        raise LaunchError(
            f"--nproc-per-node {value}: the number of ranks must be a whole number, 1 or more (or gpu, cpu, auto)."
        )
    if int(text) < 1:
        raise LaunchError(f"--nproc-per-node {value}: a run needs at least 1 rank.")
    if int(text) > 4096:
        raise LaunchError(f"--nproc-per-node {value}: more ranks than one machine can hold.")
    return int(text)


def seconds(value: object) -> float:
    """Check a deadline in seconds.

    Raises
    ------
    LaunchError
        When it is not a finite number above 0.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number) or number <= 0:
        raise LaunchError(f"--timeout {value}: the deadline must be a number of seconds above 0.")
    return number


def _split(token: str) -> tuple[str, str | None]:
    """An option as torchrun spells it with dashes, and its value where one is attached."""
    if token[:2] in ("-r", "-t") and len(token) > 2:
        return token[:2], token[2:].removeprefix("=")
    option, equals, value = token.partition("=")
    if option.startswith("--"):
        option = "--" + option[2:].replace("_", "-")
    return option, value if equals else None


def _take(found: Options, option: str, value: str | None) -> None:
    if option in REFUSED:
        raise LaunchError(f"{option} cannot be used here: {REFUSED[option]}.")
    if option == "--nproc-per-node":
        found.nproc = rank_count(value)
    elif option == "--timeout":
        found.timeout = seconds(value)
    elif option == "--as":
        if not value.isidentifier() or keyword.iskeyword(value):  # type: ignore[union-attr,arg-type]
            raise LaunchError(f"--as {value}: the result needs a Python name, such as run_a.")
        found.name = value  # type: ignore[assignment]
    elif option == "--expect-failure":
        found.expect_failure = True
    elif option == "--cold":
        found.cold = True
    elif option == "--json":
        found.json = True
    else:
        _check_number(option, value)
        found.torchrun += [option] if value is None else [option, value]


def _check_number(option: str, value: str | None) -> None:
    # torchrun itself would answer these with a traceback, after seconds.
    whole = ("--max-restarts", "--node-rank", "--master-port", "--shutdown-timeout")
    if option in whole and not str(value).isdecimal():
        raise LaunchError(f"{option} {value}: a whole number, 0 or more, is needed.")
    if option == "--nnodes":
        low, colon, high = str(value).rpartition(":")
        low = low if colon else high
        if not all(part.isdecimal() and int(part) > 0 for part in (low, high)) or int(low) > int(high):
            raise LaunchError(f"--nnodes {value}: a number of nodes from 1 on, or a range such as 1:2, is needed.")
    if option == "--monitor-interval":
        try:
            right = 0 < float(str(value)) < math.inf
        except ValueError:
            right = False
        if not right:
            raise LaunchError(f"{option} {value}: a number of seconds is needed.")


def _unknown(option: str) -> str:
    known = sorted(WITH_VALUE | FLAGS | KIT_WITH_VALUE | KIT_FLAGS - {"--json"})
    near = [name for name in known if len(option) > 3 and name.startswith(option)]
    near = near or difflib.get_close_matches(option, known, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]}?" if near else "see torchrun --help for torchrun's own."
    return f"{option} is no option of torchrun or of the kit: {hint} The script's own arguments come after its name."
