"""A small service as a process: `python -m tests.integration.runtime.sample_service`.

Owns: what the lifecycle tests start, stop and call. SAMPLE_STUBBORN makes closing hang,
SAMPLE_FAIL makes the start fail, SAMPLE_THREAD leaves a thread behind.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from services.runtime.admin import AdminSettings, serving_admin
from services.runtime.lifecycle import DrainSettings, run_main, run_process
from services.runtime.logging import LogSettings, get_logger, log_context
from services.runtime.metrics import Metrics
from services.runtime.server import build_server
from services.runtime.settings import group, setting
from services.runtime.transport import ServerSettings
from tests.integration.runtime.serving import SERVICE, add_handlers

log = get_logger("sample")


@dataclass(frozen=True, slots=True)
class SampleSettings:
    stubborn: bool = setting("SAMPLE_STUBBORN", False, "Closing never ends.")
    fail: str = setting("SAMPLE_FAIL", "", "Text of the exception that the start ends with.")
    slow: bool = setting("SAMPLE_SLOW", False, "The start never ends.")
    thread: bool = setting("SAMPLE_THREAD", False, "A thread never ends.")
    server: ServerSettings = group(ServerSettings)
    drain: DrainSettings = group(DrainSettings)
    admin: AdminSettings = group(AdminSettings)
    log: LogSettings = group(LogSettings)


class SampleProcess:
    def __init__(self, settings: SampleSettings) -> None:
        self._settings = settings
        self._built = build_server(settings.server, services=[SERVICE])
        self.ready = False

    async def start(self) -> str:
        log.info("starting")
        if self._settings.fail:
            raise RuntimeError(self._settings.fail)
        if self._settings.slow:
            await asyncio.Event().wait()
        if self._settings.thread:
            threading.Thread(target=time.sleep, args=(600,), name="endless").start()
        add_handlers(self._built.server, {"Download": self._count, "Single": self._crash})
        address = await self._built.start()
        await self._built.set_ready(True)
        self.ready = True
        return address

    async def drain(self) -> None:
        self.ready = False
        await self._built.drain()

    async def close(self) -> None:
        await self._built.close()
        if self._settings.stubborn:
            await asyncio.Event().wait()

    async def _count(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Send as many messages as the request says, ten each second."""
        ended = "count_cancelled"
        with log_context(request_id="r1"):
            try:
                for index in range(int(request)):
                    yield str(index).encode()
                    await asyncio.sleep(0.1)
                ended = "counted"
            finally:
                # A call that ends while a message is being sent closes the generator instead of
                # cancelling it.
                log.info(ended)

    async def _crash(self, request: bytes, context: Any) -> bytes:
        raise ValueError(request.decode())


async def serve(settings: SampleSettings) -> int:
    process = SampleProcess(settings)
    async with serving_admin(settings.admin, Metrics("sample"), lambda: process.ready):
        return await run_process("sample", process, settings.drain)


if __name__ == "__main__":
    sys.exit(run_main("sample", SampleSettings, serve))
