"""What this machine can do for a distributed run, and what is in the way."""

from __future__ import annotations

import html
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from .launch.plan import launcher
from .launch.tree import MARK

_ASK_TORCH = """
import json, torch, torch.distributed as dist
found = {"torch": torch.__version__, "distributed": dist.is_available()}
found["backends"] = [n for n in ("gloo", "nccl", "mpi", "ucc") if getattr(dist, f"is_{n}_available")()]
gpus = []
if torch.cuda.is_available():
    for i in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(i)
        gpus.append([torch.cuda.get_device_name(i), free, total])
found["gpus"] = gpus
found["accelerator"] = str(torch.accelerator.current_accelerator() or "")
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Preflight:
    """A table of findings.

    Attributes
    ----------
    rows : list of dict
        what, found, state ("ok", "note" or "problem") and advice ("" if none).
    """

    rows: list[dict[str, str]]

    @property
    def ok(self) -> bool:
        """True when nothing stands in the way of a run."""
        return all(row["state"] != "problem" for row in self.rows)

    def __repr__(self) -> str:
        signs = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}
        lines = []
        for row in self.rows:
            lines.append(f"{signs[row['state']]}  {row['what']:<18} {row['found']}")
            if row["advice"]:
                lines.append(f"{'':<28} {row['advice']}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        signs = {"ok": "✓", "note": "•", "problem": "✗ problem"}
        cells = "".join(
            f'<tr><td>{signs[r["state"]]}</td><td style="text-align: left"><b>{html.escape(r["what"])}</b></td>'
            f'<td style="text-align: left">{html.escape(r["found"])}'
            + (f"<br><i>{html.escape(r['advice'])}</i>" if r["advice"] else "")
            + "</td></tr>"
            for r in self.rows
        )
        return f"<table>{cells}</table>"


def preflight() -> Preflight:
    """Look at Python, torch, backends, GPUs, cores, memory, shared memory, the host name and left-over ranks.

    Takes a few seconds: torch is asked in a process of its own, so that this one never touches a GPU.
    """
    rows = [_python(), *_torch(), _launcher(), _cores(), _memory(), _shared_memory(), _host_name(), _left_over()]
    return Preflight([row for row in rows if row is not None])


def _row(what: str, found: str, state: str = "ok", advice: str = "") -> dict[str, str]:
    return {"what": what, "found": found, "state": state, "advice": advice}


def _python() -> dict[str, str]:
    good = sys.version_info >= (3, 11)
    return _row("Python", platform.python_version(), "ok" if good else "problem", "" if good else "3.11 is needed.")


def _torch() -> list[dict[str, str]]:
    try:
        answer = subprocess.run([sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=120)
        found: dict[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        said = answer.stderr.strip().splitlines()[-1:] if "answer" in locals() else ["no answer within 120 s"]
        return [_row("torch", " ".join(said), "problem", "pip install torch, in the environment of this kernel.")]
    rows = [_row("torch", found["torch"], *_version(found["torch"]))]
    if not found["distributed"]:
        rows.append(_row("backends", "none", "problem", "This torch is built without torch.distributed."))
    else:
        rows.append(_row("backends", ", ".join(found["backends"])))
    gpus = found["gpus"]
    names = [f"{name} ({free / 2**30:.1f} of {total / 2**30:.1f} GiB free)" for name, free, total in gpus]
    if len(gpus) >= 2:
        rows.append(_row("GPUs", "; ".join(names)))
    elif gpus:
        rows.append(_row("GPUs", names[0], "note", "One GPU: two ranks run with gloo on the CPU, one rank with NCCL."))
    else:
        rows.append(_row("GPUs", "none that torch can use", "note", "Runs use gloo on the CPU: real ranks, slower."))
    return rows


def _version(text: str) -> tuple[str, str]:
    major, minor = (int(part) for part in text.split(".")[:2])
    return ("ok", "") if (major, minor) >= (2, 11) else ("problem", "torch 2.11 or newer is needed.")


def _launcher() -> dict[str, str]:
    if launcher() == ["torchrun"]:
        return _row("torchrun", "of this Python")
    other = shutil.which("torchrun")
    found = "another environment's is on PATH" if other else "not on PATH"
    return _row("torchrun", found, "note", "In a terminal, write python -m torch.distributed.run with this Python.")


def _cores() -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    advice = "" if cores >= 2 else "One core: two ranks take turns."
    return _row("CPU cores", str(cores), "ok" if cores >= 2 else "note", advice)


def _memory() -> dict[str, str]:
    free = psutil.virtual_memory().available / 2**30
    low = free < 2
    return _row("memory", f"{free:.1f} GiB free", "note" if low else "ok", "Two ranks need about 1 GiB." if low else "")


def _shared_memory() -> dict[str, str] | None:
    if not Path("/dev/shm").is_dir():
        return None
    free = shutil.disk_usage("/dev/shm").free / 2**20
    low = free < 256
    advice = "DataLoader workers and NCCL need more: start the container with --shm-size=1g." if low else ""
    return _row("/dev/shm", f"{free:.0f} MiB free", "note" if low else "ok", advice)


def _host_name() -> dict[str, str]:
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return _row("host name", f"{name} does not resolve", "note", "Add it to /etc/hosts, or set GLOO_SOCKET_IFNAME.")
    return _row("host name", f"{name} is {address}")


def _left_over() -> dict[str, str]:
    found = left_over_ranks()
    if not found:
        return _row("left-over ranks", "none")
    pids = ", ".join(str(process.pid) for process in found)
    return _row("left-over ranks", f"processes {pids}", "problem", f"They hold memory and ports. End them: kill {pids}")


def left_over_ranks() -> list[psutil.Process]:
    """Processes of this user that were ranks and whose launcher is gone."""
    found = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
            if not ("TORCHELASTIC_RUN_ID" in env and "LOCAL_RANK" in env) or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if not any(_is_launcher(parent) for parent in process.parents()):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [process for process in found if process.pid != os.getpid()]


def _is_launcher(process: psutil.Process) -> bool:
    words = " ".join(process.cmdline())
    return "torchrun" in words or "torch.distributed" in words or MARK in process.environ()
