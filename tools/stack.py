"""The suite as processes of this machine: one speech service and the edge in front of it.

Owns: the order of starting and stopping, the settings that tie the two together, asking the edge
whether it is ready, and fetching the voices first. Does not own: one process's life
(`tools.processes`), what is printed (`tools.serve`, `tools.demo`). Enforces: WEIR-381 (the edge
stops before what it depends on, so utterances that are running end well).
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from tools.processes import RunningService, ServiceCommand, running

SPEECH_PATH = "/v1/audio/speech/stream"
READY_POLL_S = 0.1
PROBE_TIMEOUT_S = 2.0
DRAIN_DEADLINE_S = 30.0
"""The default of the services' own setting."""
CLOSE_ALLOWANCE_S = 15.0
"""For closing and for threads that end late, after the drain."""

StackRelay = Callable[[str, str], None]
"""Takes the short name of a service and one line of its log."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running suite. `tts` is None when the edge was pointed at speech services elsewhere."""

    edge: RunningService
    tts: RunningService | None

    @property
    def speech_url(self) -> str:
        """Where WebSocket clients connect."""
        return f"ws://{self.edge.address}{SPEECH_PATH}"

    @property
    def services(self) -> tuple[RunningService, ...]:
        """Every process of the suite."""
        return (self.edge,) if self.tts is None else (self.edge, self.tts)


@contextlib.asynccontextmanager
async def stack(environment: Mapping[str, str], relay: StackRelay) -> AsyncIterator[Stack]:
    """Run the suite with these environment variables while the block runs.

    With EDGE_TTS_TARGETS in `environment` no speech service is started. The block starts when both
    processes say they are ready; `edge_is_ready` tells when the edge would take a session. Raises
    ServiceFailedError.
    """
    async with contextlib.AsyncExitStack() as started:
        tts: RunningService | None = None
        settings = dict(environment)
        if not settings.get("EDGE_TTS_TARGETS"):
            command = _command("tts", settings)
            tts = await started.enter_async_context(running(command, lambda s: relay("tts", s)))
            settings["EDGE_TTS_TARGETS"] = tts.address
        # WEIR-381: entered last, so it is left first.
        command = _command("edge", settings)
        edge = await started.enter_async_context(running(command, lambda s: relay("edge", s)))
        yield Stack(edge, tts)


def _command(name: str, settings: Mapping[str, str]) -> ServiceCommand:
    prefix = name.upper()
    # The ready line is read from the log, so the log has to be JSON.
    environment = {**settings, f"{prefix}_LOG_FORMAT": "json"}
    drain_s = DRAIN_DEADLINE_S
    # What is not a number the service itself refuses, with a better message.
    with contextlib.suppress(ValueError):
        drain_s = float(settings.get(f"{prefix}_DRAIN_DEADLINE_S") or DRAIN_DEADLINE_S)
    return ServiceCommand(
        f"services.{name}", environment, stop_timeout_s=drain_s + CLOSE_ALLOWANCE_S
    )


async def until_ready(suite: Stack) -> None:
    """Return when the edge's /readyz says so. Raises ServiceFailedError when a process ends."""
    endings = {asyncio.create_task(s.ended()): s for s in suite.services}
    try:
        while not await asyncio.to_thread(edge_is_ready, suite.edge.address):
            done, _ = await asyncio.wait(
                endings, timeout=READY_POLL_S, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                raise endings[task].failed(f"ended with status {task.result()}")
    finally:
        for task in endings:
            task.cancel()


def edge_is_ready(address: str) -> bool:
    """Ask `/readyz` of the edge at `host:port`, waiting at most two seconds."""
    connection = http.client.HTTPConnection(address, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


async def fetch_voices(environment: Mapping[str, str]) -> bool:
    """Fetch the files of the embedded voices, showing progress; tell whether all are there.

    Another adapter than the embedded one brings its own files, so nothing is fetched for it.
    """
    if environment.get("TTS_ADAPTER", "embedded") != "embedded":
        return True
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.tts.models",
        "fetch",
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
