"""A real Jupyter kernel, driven as a notebook drives it."""

from __future__ import annotations

import ast
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

import processes
from jupyter_client import KernelManager


@dataclass
class Cell:
    """What came of a cell.

    Attributes
    ----------
    outputs : list of dict
        As a notebook would store them: an update replaces what it updates.
    messages : list of str
        The kinds of all output messages in their order.
    """

    status: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All plain text of the outputs."""
        parts = []
        for output in self.outputs:
            parts.append(output.get("text", ""))
            parts.append(output.get("data", {}).get("text/plain", ""))
            parts += output.get("traceback", [])
        return "\n".join(part for part in parts if part)

    @property
    def html(self) -> str:
        """All HTML of the outputs."""
        return "\n".join(output.get("data", {}).get("text/html", "") for output in self.outputs)

    @property
    def error(self) -> list[str]:
        """The traceback lines of the error output; empty if there is none."""
        return next((output["traceback"] for output in self.outputs if output["output_type"] == "error"), [])


class Kernel:
    """A kernel that works in `home`; use it in a ``with`` block."""

    def __init__(self, home: Path, **env: str) -> None:
        self.home = home
        self.manager = KernelManager(kernel_name="python3")
        self.manager.shutdown_wait_time = 5
        self.env = {**os.environ, "DDP_LESSON_HOME": str(home), "CUDA_VISIBLE_DEVICES": "", **env}
        self.client: Any = None

    def __enter__(self) -> Kernel:
        self.manager.start_kernel(env=self.env, cwd=str(self.home))
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        processes.keep.discard(self.pid)
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=not self.manager.is_alive())
        self.manager.cleanup_resources()

    @property
    def pid(self) -> int:
        """The kernel's process."""
        return self.manager.provisioner.pid

    def _connect(self) -> None:
        if self.client is not None:
            self.client.stop_channels()
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        processes.keep.add(self.pid)

    def restart(self, now: bool = False) -> None:
        """As the notebook's Restart button."""
        processes.keep.discard(self.pid)
        self.manager.restart_kernel(now=now)
        self._connect()

    def start(self, cell: str) -> str:
        """Begin to execute a cell."""
        return self.client.execute(cell)

    def finish(self, message: str, timeout: float = 60) -> Cell:
        """Wait for the end of a cell."""
        found = Cell()
        end = time.monotonic() + timeout
        shown: dict[str, dict[str, Any]] = {}
        while True:
            try:
                said = self.client.get_iopub_msg(timeout=max(0.01, end - time.monotonic()))
            except Empty:
                raise AssertionError(f"the cell did not end within {timeout:g} s; so far: {found.text}") from None
            if said["parent_header"].get("msg_id") != message:
                continue
            kind, content = said["msg_type"], said["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("stream", "display_data", "execute_result", "error"):
                found.messages.append(kind)
                found.outputs.append({"output_type": kind, **content})
                name = content.get("transient", {}).get("display_id")
                if name:
                    shown[name] = found.outputs[-1]
            elif kind == "update_display_data":
                found.messages.append(kind)
                shown[content["transient"]["display_id"]].update(content)
        while True:
            reply = self.client.get_shell_msg(timeout=max(0.01, end - time.monotonic()))
            if reply["parent_header"].get("msg_id") == message:
                found.status = reply["content"]["status"]
                return found

    def run(self, cell: str, timeout: float = 60) -> Cell:
        """Execute a cell."""
        return self.finish(self.start(cell), timeout)

    def literal(self, expression: str) -> Any:
        """The value of an expression in the kernel."""
        return ast.literal_eval(self.value(expression))

    def value(self, expression: str) -> str:
        """The repr of an expression in the kernel."""
        message = self.client.execute("", user_expressions={"it": expression}, silent=True)
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == message:
                it = reply["content"]["user_expressions"]["it"]
                assert it["status"] == "ok", it
                return it["data"]["text/plain"]
