"""The suite as processes of this machine: a speech and a video service, the edge in front of them.

Owns: the order of starting and stopping, the settings that tie them together, asking the edge
whether it is ready, and fetching the voices first. Does not own: one process's life
(`tools.processes`), what is printed (`tools.serve`, `tools.demo`). Enforces: WEIR-381 (the edge
stops before what it depends on, so what is being spoken or shown ends well).
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.processes import RunningService, ServiceCommand, running

SPEECH_PATH = "/v1/audio/speech/stream"
VIDEO_PATH = "/v1/realtime/video"
PARTS = frozenset({"speech", "video"})
"""The parts of the edge's capabilities, one for each kind of session."""
BACKENDS: Mapping[str, str] = {"tts": "EDGE_TTS_TARGETS", "video": "EDGE_VIDEO_TARGETS"}
"""The services behind the edge, and the setting that tells it where each one is."""
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
    """A running suite. `backends` lacks a service when the edge was pointed at one elsewhere."""

    edge: RunningService
    backends: Mapping[str, RunningService]

    @property
    def speech_url(self) -> str:
        """Where WebSocket clients connect for speech."""
        return f"ws://{self.edge.address}{SPEECH_PATH}"

    @property
    def video_url(self) -> str:
        """Where WebSocket clients connect for video."""
        return f"ws://{self.edge.address}{VIDEO_PATH}"

    @property
    def services(self) -> tuple[RunningService, ...]:
        """Every process of the suite."""
        return (self.edge, *self.backends.values())


@contextlib.asynccontextmanager
async def stack(environment: Mapping[str, str], relay: StackRelay) -> AsyncIterator[Stack]:
    """Run the suite with these environment variables while the block runs.

    With EDGE_TTS_TARGETS or EDGE_VIDEO_TARGETS in `environment` no such service is started. The
    block starts when every process says it is ready; `edge_is_ready` tells when the edge would take
    sessions. Raises ServiceFailedError.
    """
    async with contextlib.AsyncExitStack() as started:

        async def start(name: str) -> RunningService:
            command = _command(name, settings)
            return await started.enter_async_context(running(command, lambda s: relay(name, s)))

        settings, backends = dict(environment), dict[str, RunningService]()
        for name, targets in BACKENDS.items():
            if not settings.get(targets):
                backends[name] = await start(name)
                settings[targets] = backends[name].address
        # WEIR-381: entered last, so it is left first.
        yield Stack(await start("edge"), backends)


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
    """Return when the edge would take sessions. Raises ServiceFailedError when a process ends."""
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
    """Ask the edge at `host:port` whether it would take sessions of every kind.

    Waits at most four seconds. Its `/readyz` alone says yes as soon as one kind can be held.
    """
    try:
        return _asked(address, "/readyz") is not None and capabilities(address).keys() >= PARTS
    except (OSError, http.client.HTTPException):
        return False


def capabilities(address: str) -> dict[str, Any]:
    """Return what the edge at `host:port` serves, by part; empty when it serves nothing.

    Raises OSError or http.client.HTTPException when it cannot be asked.
    """
    body = _asked(address, "/v1/capabilities")
    served: dict[str, Any] = json.loads(body) if body is not None else {}
    return served


def _asked(address: str, path: str) -> bytes | None:
    """Return the body of an answer 200, None for every other answer."""
    connection = http.client.HTTPConnection(address, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == http.client.OK else None
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
