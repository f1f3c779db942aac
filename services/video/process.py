"""The video service as a process: what it does to start, to drain and to end.

Owns: the order in which server, model and engine come up and go down. Does not own: signals and
deadlines (`services.runtime.lifecycle`), health (`services.runtime.server`). Enforces: WEIR-067
(health is SERVING only while the model is loaded and the process is not draining).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from weir.video.v1 import video_pb2, video_pb2_grpc

from services.runtime.loading import off_the_loop
from services.runtime.logging import get_logger
from services.runtime.server import GrpcServer, build_server
from services.video.adapters.base import ModelUnavailableError, VideoAdapter
from services.video.engine import Engine, EngineLimits
from services.video.metrics import VideoMetrics
from services.video.servicer import VideoServicer
from services.video.settings import VideoSettings

SERVICE = video_pb2.DESCRIPTOR.services_by_name["VideoService"].full_name
FAREWELL_S = 1.0
"""Time that generations which are cut short have to tell their clients why."""
LEAVE_TIMEOUT_S = 2.0
"""Time that threads have to leave the adapter before it stays loaded for good."""
MESSAGE_OVERHEAD_BYTES = 64 * 1024
"""Room in a response beside the payload: identity, ids, framing."""

_log = get_logger(__name__)


class VideoProcess:
    """A `services.runtime.lifecycle.Process`. `adapter` is made but not loaded."""

    def __init__(
        self,
        settings: VideoSettings,
        adapter: VideoAdapter[Any, Any, Any],
        metrics: VideoMetrics,
    ) -> None:
        self._settings = settings
        self._adapter = adapter
        self._loaded = False
        self._serving = False
        self._metrics = metrics
        self._server: GrpcServer | None = None
        self.address: str | None = None
        """Where it listens, as soon as it does."""
        self.engine: Engine | None = None
        """What generates, as soon as the model is loaded."""

    @property
    def ready(self) -> bool:
        """Whether health says SERVING; any thread may ask."""
        return self._serving

    async def start(self) -> str:
        """Listen, then load the model, then be SERVING; return the address clients dial."""
        server = self._server = build_server(self._settings.server, services=[SERVICE])
        servicer = VideoServicer(self._settings.call, self._metrics)
        video_pb2_grpc.add_VideoServiceServicer_to_server(servicer, server.server)
        self.address = await server.start()
        # The model may take minutes, and whoever asks meanwhile is told so.
        _log.info("listening", address=self.address, adapter=self._settings.adapter)
        self.engine = await self._load()
        servicer.serve(self.engine)
        await server.set_ready(True)
        self._serving = True
        return self.address

    async def drain(self) -> None:
        """Take no new generations; return when the running ones have ended."""
        self._serving = False
        if self._server is not None:
            await self._server.drain()

    async def close(self) -> None:
        """Fail what still runs, stop listening and free the model."""
        self._serving = False
        if self.engine is not None:
            self.engine.shut_down()
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL_S):
                    # Its calls end one after the other, each with its outcome.
                    await self.drain()
        if self._server is not None:
            await self._server.close()
        if self.engine is not None:
            await self._close_engine(self.engine)
        if self._loaded:
            await off_the_loop(self._adapter.unload, "unload the video model")

    async def _load(self) -> Engine:
        begun = time.monotonic()
        try:
            await off_the_loop(self._adapter.load, "load the video model")
            engine = self._make_engine()
        except Exception as error:
            if isinstance(error, ModelUnavailableError):
                # Its text is the adapter's own, never a user's, and says what to do.
                _log.error("model_unavailable", problem=str(error))
            await off_the_loop(self._adapter.unload, "unload the video model")
            raise
        self._loaded = True
        _log.info(
            "model_loaded",
            model=engine.capabilities.model,
            slots=engine.admission.slots,
            seconds=round(time.monotonic() - begun, 3),
        )
        return engine

    def _make_engine(self) -> Engine:
        settings = self._settings
        limits = EngineLimits(
            settings.engine,
            settings.encoding,
            settings.call.waiting_messages,
            max(1, settings.server.max_response_bytes - MESSAGE_OVERHEAD_BYTES),
        )
        return Engine(self._adapter, limits, self._metrics, settings.model_name)

    async def _close_engine(self, engine: Engine) -> None:
        engine.close()
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await engine.left()
        except TimeoutError:
            # A model must not be freed under a thread that still computes with it.
            _log.error("model_does_not_stop", busy_sessions=engine.admission.busy)
            self._loaded = False
        engine.close()
