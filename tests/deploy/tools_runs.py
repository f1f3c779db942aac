"""A tool of this repository as a child process whose printed lines a test can wait for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

import psutil

from tests.processes import ROOT

LINE_TIMEOUT_S = 60.0
END_TIMEOUT_S = 240.0


class ToolRun:
    """A running `python -m tools.…`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line(self, beginning: str) -> str:
        """Wait for a line that begins like this; fail with what was printed instead."""
        assert self.process.stdout is not None
        async with asyncio.timeout(LINE_TIMEOUT_S):
            while raw := await self.process.stdout.readline():
                self.lines.append(raw.decode().rstrip("\n"))
                if self.lines[-1].startswith(beginning):
                    return self.lines[-1]
        raise AssertionError("\n".join(["it ended without that line:", *self.lines]))

    async def ended(self) -> int:
        """Read everything up to the end; return the exit status."""
        assert self.process.stdout is not None
        async with asyncio.timeout(END_TIMEOUT_S):
            self.lines += (await self.process.stdout.read()).decode().splitlines()
            return await self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the tool, and to nothing that it has started."""
        self.process.send_signal(number)

    def services(self) -> dict[str, psutil.Process]:
        """The service processes that it has started, by module."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return {child.cmdline()[2]: child for child in children}

    @property
    def printed(self) -> str:
        """Everything read so far."""
        return "\n".join(self.lines)


@contextlib.asynccontextmanager
async def tool(module: str, *arguments: str, **environment: str) -> AsyncIterator[ToolRun]:
    """Run `python -m module` on free ports while the block runs."""
    dropped = ("TTS_", "EDGE_", "PYTEST_")
    inherited = {name: v for name, v in os.environ.items() if not name.startswith(dropped)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        cwd=ROOT,
        env=inherited | {"TTS_PORT": "0", "EDGE_PORT": "0", "TTS_ADAPTER": "tone"} | environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    run = ToolRun(process)
    try:
        yield run
    finally:
        if process.returncode is None:
            # Twice: the first drains, the second ends at once.
            for _ in range(2):
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await process.wait()
                        break
