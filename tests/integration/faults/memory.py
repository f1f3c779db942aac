"""How much a process grows while something happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psutil

from tests.processes import ServiceProcess

LOOK_S = 0.02


class Growth:
    """The greatest growth of resident memory of some processes, in bytes, since it was made."""

    def __init__(self, processes: Sequence[ServiceProcess]) -> None:
        self._watched = [psutil.Process(process.pid) for process in processes]
        self._before = [process.memory_info().rss for process in self._watched]
        self.most = [0] * len(self._before)

    def look(self) -> None:
        """Take what there is now into account."""
        for index, process in enumerate(self._watched):
            grown = process.memory_info().rss - self._before[index]
            self.most[index] = max(self.most[index], grown)

    async def until(self, process: ServiceProcess, event: str, timeout_s: float = 20.0) -> None:
        """Keep looking until the process has logged an event."""
        waiting = asyncio.create_task(process.event(event, timeout_s))
        while not waiting.done():
            self.look()
            await asyncio.wait([waiting], timeout=LOOK_S)
        await waiting
        self.look()
