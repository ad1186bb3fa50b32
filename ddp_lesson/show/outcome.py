"""What stands below a cell when its run has ended: compact, static, readable without scripts or styles."""

from __future__ import annotations

import html
import os
import re
import sys
import sysconfig
from typing import TYPE_CHECKING

from ddp_lesson.doctor import echoes

from .colours import rank_colour

if TYPE_CHECKING:
    from ddp_lesson.launch.run import Rank, Run

FIRST, LAST = 40, 160
MOST_CHARACTERS = 2000
PRE = '<pre style="font-family: var(--jp-code-font-family, monospace); margin: 0">'


def outcome(run: Run) -> dict[str, str]:
    """The result as text and as HTML.

    Returns
    -------
    dict
        MIME type → text. Nothing in it depends on the order in which ranks wrote.
    """
    return {"text/plain": as_text(run), "text/html": as_html(run)}


def headline(run: Run) -> str:
    """One sentence on how the run ended."""
    who = f"{run.nproc} rank{'s' * (run.nproc != 1)}"
    cold = "" if run.warm else ", cold"
    if run.ok:
        return f"{who} finished in {run.wall_s:.1f} s{cold}"
    how = "reached the deadline and was ended" if run.timed_out else "was stopped" if run.stopped else "failed"
    return f"The run of {who} {how} after {run.wall_s:.1f} s{cold}"


def failure_lines(run: Run) -> list[str]:
    """Who began it, in what words, and what to do: at most three lines."""
    failure = run.failure
    if failure is None or run.stopped:
        return []
    lines = []
    if failure.exception:
        first, *more = shorten(failure.exception).splitlines()
        where = f"It began on rank {failure.rank}: " if failure.rank is not None else ""
        lines.append(where + first + (" …" if more else ""))
    elif failure.rank is not None:
        lines.append(f"It began on rank {failure.rank}.")
    return [*lines, failure.advice] + ([f"Cause: {failure.cause}"] if failure.cause else [])


def as_text(run: Run) -> str:
    """The result as plain text."""
    lines = ["$ " + shorten(run.command), headline(run), *run.notes, *failure_lines(run)]
    echo = echoes(run)
    for rank in run.ranks:
        if rank.rank in echo:
            lines.append(f"── rank {rank.rank}, {_echo_words(run)}")
            continue
        lines.append(f"── rank {rank.rank}, {exit_words(rank)}")
        for label, shown, more in _outputs(run, rank):
            if label == "stderr":
                lines.append("   stderr:")
            lines += shown
            if more:
                lines.append(more)
    return "\n".join(line.rstrip() for line in lines)


def as_html(run: Run) -> str:
    """The result as HTML; everything that a rank wrote is escaped."""
    parts = [
        f"<div>{PRE}$ {html.escape(shorten(run.command))}</pre>",
        f"<p><b>{html.escape(headline(run))}</b>",
        *(f"<br>{html.escape(line)}" for line in [*run.notes, *failure_lines(run)]),
        "</p>",
    ]
    echo = echoes(run)
    for rank in run.ranks:
        style = f"border-left: 4px solid {rank_colour(rank.rank)}; padding-left: 8px; margin: 4px 0"
        body = _rank_html(run, rank)
        how = exit_words(rank)
        if rank.rank in echo:
            # What a victim says before it is ended differs from run to run.
            body = f'<details class="echo"><summary>{how}</summary>{body}</details>'
            how = _echo_words(run)
        parts.append(f'<div style="{style}"><b>rank {rank.rank}</b>, {how}{body}</div>')
    return "\n".join([*parts, "</div>"])


def _rank_html(run: Run, rank: Rank) -> str:
    parts = []
    for label, shown, more in _outputs(run, rank):
        text = html.escape("\n".join(shown))
        if label == "stderr":
            opened = " open" if rank.exitcode else ""
            parts.append(f"<details{opened}><summary>stderr</summary>{PRE}{text}</pre></details>")
        else:
            parts.append(f"{PRE}{text}</pre>")
        if more:
            parts.append(f"<p><i>{html.escape(more)}</i></p>")
    return "\n".join(parts)


def _echo_words(run: Run) -> str:
    return f"ended because of rank {run.failure.rank}"


def exit_words(rank: Rank) -> str:
    """An exit code in words."""
    code = rank.exitcode
    if code is None:
        return "exit code unknown" if rank.log_dirs else "was not started"
    if code >= 0:
        return f"exit code {code}"
    import signal

    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def shorten(text: str) -> str:
    """Paths as seen from here: no folder of this machine stands in a saved notebook."""
    here = os.getcwd()
    from ddp_lesson.launch.places import root

    for path, short in _known_paths(here, str(root())):
        text = text.replace(path + os.sep, short + os.sep if short else "").replace(path, short or ".")
    return text


def _known_paths(here: str, home: str) -> list[tuple[str, str]]:
    libraries = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    libraries |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    found = [(path, "…") for path in libraries if path]
    found += [(sysconfig.get_path("stdlib"), "…"), (here, "")]
    if home != here:
        found.append((home, os.path.relpath(home, here)))
    found.append((os.path.expanduser("~"), "~"))
    # The longest first: a library may lie in the project's folder.
    return sorted(((a, b) for a, b in found if len(a) > 1), key=lambda pair: -len(pair[0]))


def _outputs(run: Run, rank: Rank) -> list[tuple[str, list[str], str | None]]:
    """(stream, lines to show, a sentence on what is not shown) for each stream that has something."""
    found = []
    for label, text in (("stdout", rank.stdout), ("stderr", rank.stderr)):
        if not text.strip():
            continue
        lines = [_clean(line) for line in _after_carriage_returns(text)]
        more = None
        if len(lines) > FIRST + LAST:
            hidden = len(lines) - FIRST - LAST
            where = _file(run, rank, f"{label}.log")
            more = f"{hidden} of {len(lines)} lines are not shown here; all are in {where}"
            lines = [*lines[:FIRST], f"… {hidden} lines …", *lines[-LAST:]]
        found.append((label, [shorten(line) for line in lines], more))
    return found


def _after_carriage_returns(text: str) -> list[str]:
    # A progress bar that redraws itself leaves its last state.
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]


def _clean(line: str) -> str:
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)
    if len(line) > MOST_CHARACTERS:
        line = f"{line[:MOST_CHARACTERS]}… ({len(line)} characters)"
    return line


def _file(run: Run, rank: Rank, name: str) -> str:
    path = rank.log_dirs[-1] / name if rank.log_dirs else run.path / "logs"
    return os.path.relpath(path)
