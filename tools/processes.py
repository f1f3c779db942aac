"""One service as a child process.

Owns: starting `python -m <module>`, finding its ready line in the JSON log, relaying that log, and
ending the process within a bound. Does not own: which services make up the suite (`tools.stack`),
or any setting of theirs. Enforces: WEIR-380 (a child never outlives the block that started it).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LINE_LIMIT_BYTES = 1 << 20
REMEMBERED_LINES = 20

Relay = Callable[[str], None]
"""Takes one line of a child's log, without its newline."""


class ServiceFailedError(Exception):
    """A service ended, or did not become ready in time; `log` is the end of its log."""

    def __init__(self, summary: str, log: tuple[str, ...]) -> None:
        super().__init__(summary)
        self.log = log


@dataclass(frozen=True, slots=True)
class ServiceCommand:
    """What to run: a module, its whole environment, and how long to wait for it, in seconds."""

    module: str
    environment: Mapping[str, str]
    ready_timeout_s: float = 120.0
    stop_timeout_s: float = 45.0


@dataclass(slots=True)
class RunningService:
    """A service that has said it is ready, and the `host:port` it said it listens on."""

    command: ServiceCommand
    process: asyncio.subprocess.Process
    address: str = ""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_LINES))

    async def ended(self) -> int:
        """Wait for the process to end; return its exit status."""
        return await self.process.wait()

    def failed(self, what: str) -> ServiceFailedError:
        """Return the error that says `what` happened and how the log ended."""
        return ServiceFailedError(f"{self.command.module} {what}", tuple(self.last_lines))


@contextlib.asynccontextmanager
async def running(command: ServiceCommand, relay: Relay) -> AsyncIterator[RunningService]:
    """Run a service while the block runs; the block starts when the service is ready.

    `relay` gets every line of the log. On leaving, SIGTERM, and SIGKILL when the service has not
    ended after `stop_timeout_s`. Raises ServiceFailedError when it never becomes ready.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        command.module,
        env=dict(command.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT_BYTES,
        # A terminal's Ctrl-C goes to its whole process group: only this block stops the service.
        start_new_session=True,
    )
    service = RunningService(command, process)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    pump = asyncio.create_task(_pump(service, ready, relay))
    try:
        service.address = await _first_of(service, ready)
        yield service
    finally:
        # WEIR-380: whatever ended the block, the child is gone before it is left.
        try:
            await _stop(service)
        finally:
            await pump


async def _first_of(service: RunningService, ready: asyncio.Future[str]) -> str:
    ended = asyncio.create_task(service.ended())
    waiting: set[asyncio.Future[Any]] = {ready, ended}
    try:
        await asyncio.wait(
            waiting,
            timeout=service.command.ready_timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if ready.done():
            return ready.result()
        if ended.done():
            raise service.failed(f"ended with status {ended.result()} before it was ready")
        raise service.failed(f"was not ready after {service.command.ready_timeout_s:g} s")
    finally:
        ended.cancel()


async def _pump(service: RunningService, ready: asyncio.Future[str], relay: Relay) -> None:
    stream = service.process.stderr
    assert stream is not None  # asked for when the process was made
    while True:
        try:
            raw = await stream.readline()
        except ValueError:  # longer than the limit; asyncio has dropped it already
            raw = b"(a log line was too long to show)\n"
        if not raw:
            return
        line = raw.decode("utf-8", "replace").rstrip("\n")
        service.last_lines.append(line)
        relay(line)
        address = ready_address(line)
        if address is not None and not ready.done():
            ready.set_result(address)


def ready_address(line: str) -> str | None:
    """Return the address in a service's ready line, None for every other line."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("event") != "ready":
        return None
    address = record.get("address")
    return address if isinstance(address, str) else None


async def _stop(service: RunningService) -> None:
    process, timeout_s = service.process, service.command.stop_timeout_s
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        raise service.failed(f"had to be killed: still running after {timeout_s:g} s") from None
    finally:
        # Also when the wait itself is cancelled, and for workers that the service left behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
