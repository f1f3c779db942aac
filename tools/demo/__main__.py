"""`make demo`: set up, start the suite on free ports, show every part, stop everything.

Owns: the order of things, the log file and the exit status. Does not own: what a part shows
(`speech`), the services (`tools.stack`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tools.demo import speech
from tools.processes import ServiceFailedError
from tools.stack import Stack, fetch_voices, stack, until_ready
from tools.stop_signals import StopSignals

Part = Callable[[Stack, Path], Awaitable[list[str]]]

PARTS: tuple[Part, ...] = (speech.run,)
"""Each part shows one service and returns what went wrong, nothing when all went well."""


async def demonstrate(folder: Path) -> int:
    """Run every part against services of our own; return the exit status."""
    signals = StopSignals()
    # Ports of our own, so a running `make serve` is left alone.
    environment = {**os.environ, "TTS_PORT": "0", "EDGE_PORT": "0", "EDGE_TTS_TARGETS": ""}
    problems: list[str] = []
    try:
        if not await fetch_voices(environment):
            problems.append("some voices could not be fetched")
        log = folder / "services.log"
        with log.open("w", encoding="utf-8") as lines:
            print("starting the services")
            async with stack(environment, lambda _, line: print(line, file=lines)) as suite:
                await until_ready(suite)
                print(f"ready: {suite.speech_url} (log in {log})")
                for part in PARTS:
                    problems += await part(suite, folder)
    except ServiceFailedError as error:
        problems.append("\n  ".join([str(error), *error.log]))
    except asyncio.CancelledError:
        if not signals.received.is_set():
            raise
        problems.append("stopped before the end")
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    return 1 if problems else 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Show the suite at work.")
    parser.add_argument("--output", type=Path, default=Path(".demo"), help="folder of the files")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    return asyncio.run(demonstrate(folder))


if __name__ == "__main__":
    sys.exit(main())
