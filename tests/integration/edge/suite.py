"""The edge and its speech replicas as real processes, and what can be seen of them from outside.

Owns: starting them for tests, plain HTTP, metrics, and the one bounded wait for a condition.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.integration.edge.client import PATIENCE_S
from tests.processes import READY_TIMEOUT_S, ServiceProcess, StartProcess

POLL_S = 0.01

Value = TypeVar("Value")

# Replicas that come and go are noticed at once, and a suite has an admin port of its own.
EDGE_ENV = {
    "EDGE_PORT": "0",
    "EDGE_ADMIN_PORT": "0",
    "EDGE_BACKEND_REFRESH_INTERVAL_S": "0.5",
    "EDGE_BACKEND_PROBE_BACKOFF_FIRST_S": "0.02",
    "EDGE_BACKEND_PROBE_BACKOFF_MOST_S": "0.1",
    "EDGE_BACKEND_MAX_RECONNECT_S": "0.2",
}
TTS_ENV = {"TTS_ADAPTER": "tone", "TTS_PORT": "0", "TTS_ADMIN_PORT": "0"}


@dataclass(frozen=True)
class HttpResponse:
    """What plain HTTP answered; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


async def start_tts(start: StartProcess, options: str = "", **env: str) -> ServiceProcess:
    """Start one replica with the tone adapter and its options."""
    settings = {**TTS_ENV, "TTS_ADAPTER_OPTIONS": options, **env}
    return await start("services.tts", ready_timeout_s=READY_TIMEOUT_S, **settings)


async def start_edge(
    start: StartProcess, *replicas: ServiceProcess | str, **env: str
) -> ServiceProcess:
    """Start an edge for these replicas, and wait until it has found one."""
    edge = await launch_edge(start, *replicas, **env)
    await until_ready(edge.address)
    return edge


async def launch_edge(
    start: StartProcess, *replicas: ServiceProcess | str, **env: str
) -> ServiceProcess:
    """Start an edge; it listens, whether or not there is a replica."""
    targets = ",".join(r if isinstance(r, str) else r.address for r in replicas)
    settings = {**EDGE_ENV, "EDGE_TTS_TARGETS": targets, **env}
    return await start("services.edge", ready_timeout_s=READY_TIMEOUT_S, **settings)


async def until_ready(address: str) -> None:
    """Wait until the edge has a replica."""
    await eventually(lambda: _ready(address), "the edge is ready")


async def _ready(address: str) -> bool:
    return (await http_get(address, "/readyz")).status == 200


async def eventually(
    check: Callable[[], Awaitable[Value]], what: str, timeout_s: float = PATIENCE_S
) -> Value:
    """Ask `check` again and again until it tells something true; return that.

    Fails with `what` when the time is over. For what no event or log line tells.
    """
    until = time.monotonic() + timeout_s
    while not (value := await check()):
        assert time.monotonic() < until, f"not within {timeout_s:g} s: {what}"
        await asyncio.sleep(POLL_S)
    return value


async def http_get(address: str, path: str, *, method: str = "GET", **headers: str) -> HttpResponse:
    """Ask over plain HTTP, one connection a question."""
    host, _, port = address.rpartition(":")
    fields = {"Host": address, **{name.title(): value for name, value in headers.items()}}
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in fields.items()), "", ""]
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write("\r\n".join(lines).encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    status, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in rest)
    return HttpResponse(
        int(status.split()[1]), {n.strip().lower(): v.strip() for n, _, v in pairs}, body
    )


async def metric(process: ServiceProcess, name: str, **labels: str) -> float:
    """Return one value of the process's metrics; KeyError when there is none."""
    admin = (await process.event("admin_listening"))["address"]
    page = (await http_get(admin, "/metrics", connection="close")).body.decode()
    wanted = name + (
        "{" + ",".join(f'{n}="{v}"' for n, v in labels.items()) + "}" if labels else ""
    )
    for line in page.splitlines():
        series, _, value = line.rpartition(" ")
        if series == wanted:
            return float(value)
    raise KeyError(wanted)


async def until_metric(
    process: ServiceProcess, name: str, value: float, timeout_s: float = PATIENCE_S, **labels: str
) -> None:
    """Wait until a metric has this value."""

    async def reached() -> bool:
        return await metric(process, name, **labels) == value

    await eventually(reached, f"{name} is {value:g}", timeout_s)


@contextmanager
def shared_processes(*, show: Callable[[], bool]) -> Iterator[StartProcess]:
    """A `start_process` for fixtures that live longer than a test; logs shown if `show()`."""
    started: list[ServiceProcess] = []

    async def start(
        module: str, *arguments: str, ready_timeout_s: float | None = READY_TIMEOUT_S, **env: str
    ) -> ServiceProcess:
        process = ServiceProcess(module, *arguments, env=env)
        started.append(process)
        if ready_timeout_s is not None:
            await process.ready(ready_timeout_s)
        return process

    try:
        yield start
    finally:
        for process in reversed(started):
            process.close()
            if show():
                print(f"--- log of {process.module} (pid {process.pid})\n{process.text()}")


def run_once(starting: Awaitable[Value]) -> Value:
    """Wait for something outside any test, leaving no loop, task or thread behind."""

    async def waited() -> Value:
        return await starting

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(waited())
