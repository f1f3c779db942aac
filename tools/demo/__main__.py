"""`make demo`: set up, start the suite on free ports, show every part, stop everything.

Owns: the order of things, the log file and the exit status. Does not own: what a part shows
(`speech`, `video`), the services (`tools.stack`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from tools.demo import speech, video
from tools.processes import ServiceFailedError
from tools.stack import Stack, fetch_voices, stack, until_ready
from tools.stop_signals import StopSignals

Part = Callable[[Stack, Path], Awaitable[list[str]]]

PARTS: Mapping[str, Part] = {"speech": speech.run, "video": video.run}
"""Each part shows one service and returns what went wrong, nothing when all went well."""


OWN_SERVICES = {
    "TTS_PORT": "0",
    "VIDEO_PORT": "0",
    "EDGE_PORT": "0",
    "EDGE_TTS_TARGETS": "",
    "EDGE_VIDEO_TARGETS": "",
}
"""On ports that the system chooses, so a running `make serve` is left alone."""


async def demonstrate(folder: Path, parts: Sequence[str]) -> int:
    """Run these parts against services of our own; return the exit status."""
    signals = StopSignals()
    environment = {**os.environ, **OWN_SERVICES}
    problems: list[str] = []
    try:
        if not await fetch_voices(environment):
            problems.append("some voices could not be fetched")
        log = folder / "services.log"
        with log.open("w", encoding="utf-8") as lines:
            print("starting the services")
            async with stack(environment, lambda _, line: print(line, file=lines)) as suite:
                await until_ready(suite)
                print(f"ready: {suite.speech_url} and {suite.video_url} (log in {log})")
                for part in parts:
                    problems += await PARTS[part](suite, folder)
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
    parser.add_argument(
        "--part", action="append", choices=sorted(PARTS), help="what to show; without it: all"
    )
    arguments = parser.parse_args()
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    return asyncio.run(demonstrate(folder, arguments.part or list(PARTS)))


if __name__ == "__main__":
    sys.exit(main())
