"""`make serve`: the whole suite in the foreground until it is told to stop.

Owns: what is printed, the choice of the services' ports, and the reaction to signals. Does
not own: starting and stopping (`tools.stack`). Enforces: WEIR-382 ("ready" is said only when the
edge says so itself).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys

from tools.processes import ServiceFailedError
from tools.stack import Stack, fetch_voices, stack, until_ready
from tools.stop_signals import StopSignals

EDGE_PORT = 8000
PREFERRED_PORTS = {"TTS_PORT": 50051, "VIDEO_PORT": 50052}
"""Where a person at this machine would look for the services behind the edge."""
HIDDEN_FIELDS = ("time", "service", "logger")
"""Fields of a log line that a person at a terminal can do without."""


def port_is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen there now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def settings(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of the services: the preferred ports when they are free, else any.

    A port that was asked for is kept, and so fails loudly when it is taken.
    """
    defaults = {"EDGE_PORT": str(EDGE_PORT)}
    for name, port in PREFERRED_PORTS.items():
        defaults[name] = str(port if port_is_free("127.0.0.1", port) else 0)
    return {**defaults, **{name: value for name, value in environment.items() if value}}


def say(text: str) -> None:
    """Print one line now, also into a pipe."""
    print(text, flush=True)


def shown(name: str, line: str) -> str:
    """Return a log line with its service in front; on a terminal without braces and quotes."""
    if sys.stdout.isatty():
        with contextlib.suppress(ValueError, AttributeError, KeyError):
            record = json.loads(line)
            head = f"{record.pop('level'):<7} {record.pop('event')}"
            rest = (f"{key}={value}" for key, value in record.items() if key not in HIDDEN_FIELDS)
            line = "  ".join([head, *rest])
    return f"{name:<5} | {line}"


async def serve(environment: dict[str, str]) -> int:
    """Run the suite until a signal or until a process ends; return the exit status."""
    signals = StopSignals()
    try:
        if not await fetch_voices(environment):
            say("Some voices could not be fetched (see above); everything else works.")
        async with stack(environment, lambda name, line: say(shown(name, line))) as suite:
            await until_ready(suite)
            announce(suite)
            signals.graceful = True
            ended = await _first_ending(suite, signals.received)
            if ended is not None:
                raise ended
            say("stopping")
    except ServiceFailedError as error:
        print(error, file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        if not signals.received.is_set():
            raise
    say("stopped")
    return 0


async def _first_ending(suite: Stack, stopping: asyncio.Event) -> ServiceFailedError | None:
    endings = {asyncio.create_task(s.ended()): s for s in suite.services}
    told = asyncio.create_task(stopping.wait())
    try:
        done, _ = await asyncio.wait({told, *endings}, return_when=asyncio.FIRST_COMPLETED)
        if told in done:
            return None
        task = next(iter(done & endings.keys()))
        return endings[task].failed(f"ended by itself with status {task.result()}")
    finally:
        for task in (told, *endings):
            task.cancel()


def announce(suite: Stack) -> None:
    """Print where everything is (WEIR-382: called when the edge would take sessions)."""
    host = suite.edge.address
    say(f"ready  speech  {suite.speech_url}")
    say(f"ready  video   {suite.video_url}")
    say(f"ready  edge    http://{host}/readyz  http://{host}/v1/capabilities")
    for name, service in suite.backends.items():
        say(f"ready  gRPC    {name} {service.address}")
    say("Ctrl-C stops everything.")


def main() -> int:
    """Fetch what is missing, then serve."""
    return asyncio.run(serve(settings(dict(os.environ))))


if __name__ == "__main__":
    sys.exit(main())
