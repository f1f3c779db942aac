"""The speech service as a process: what it does to start, to drain and to end.

Owns: the order in which server, model and engine come up and go down. Does not own: signals and
deadlines (`services.runtime.lifecycle`), health (`services.runtime.server`). Enforces: WEIR-067
(health is SERVING only while the model is loaded and the process is not draining).
"""

from __future__ import annotations

import asyncio
import time

from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from services.runtime.logging import get_logger
from services.runtime.server import GrpcServer, build_server
from services.tts import loading
from services.tts.adapters.base import ModelUnavailableError, VoiceAdapter
from services.tts.engine import Engine
from services.tts.metrics import TtsMetrics
from services.tts.servicer import TtsServicer
from services.tts.settings import TtsSettings

SERVICE = tts_pb2.DESCRIPTOR.services_by_name["TtsService"].full_name
LEAVE_TIMEOUT_S = 2.0
"""Time that threads have to leave the adapter before it stays open for good."""

_log = get_logger(__name__)


class TtsProcess:
    """A `services.runtime.lifecycle.Process`. `adapter` is made but not loaded."""

    def __init__(self, settings: TtsSettings, adapter: VoiceAdapter, metrics: TtsMetrics) -> None:
        self._settings = settings
        self._adapter = adapter
        self._loaded = False
        self._serving = False
        self._metrics = metrics
        self._server: GrpcServer | None = None
        self.address: str | None = None
        """Where it listens, as soon as it does."""
        self.engine: Engine | None = None
        """What speaks, as soon as the model is loaded."""

    @property
    def ready(self) -> bool:
        """Whether health says SERVING; any thread may ask."""
        return self._serving

    async def start(self) -> str:
        """Listen, then load the model, then be SERVING; return the address clients dial."""
        server = self._server = build_server(self._settings.server, services=[SERVICE])
        servicer = TtsServicer(self._settings.call, self._metrics)
        tts_pb2_grpc.add_TtsServiceServicer_to_server(servicer, server.server)
        self.address = await server.start()
        # The model may take minutes, and whoever asks meanwhile is told so.
        _log.info("listening", address=self.address, adapter=self._settings.adapter)
        self.engine = await self._load()
        servicer.serve(self.engine)
        await server.set_ready(True)
        self._serving = True
        return self.address

    async def drain(self) -> None:
        """Take no new segments; return when the accepted ones have been spoken."""
        self._serving = False
        if self._server is not None:
            await self._server.drain()

    async def close(self) -> None:
        """Cancel what still runs, stop listening and free the model."""
        if self._server is not None:
            await self._server.close()
        if self.engine is not None:
            await self._close_engine(self.engine)
        if self._loaded:
            await loading.close(self._adapter)

    async def _load(self) -> Engine:
        begun = time.monotonic()
        try:
            await loading.load(self._adapter)
        except Exception as error:
            if isinstance(error, ModelUnavailableError):
                # Its text is the adapter's own, never a user's, and says what to do.
                _log.error("model_unavailable", problem=str(error))
            await loading.close(self._adapter)
            raise
        self._loaded = True
        settings = self._settings
        engine = Engine(self._adapter, settings.engine, self._metrics, settings.model_name)
        slots = engine.admission.slots
        if settings.slots is not None and slots < settings.slots:
            _log.warning("fewer_slots_than_set", set=settings.slots, adapter=slots)
        _log.info(
            "model_loaded",
            model=engine.capabilities.model,
            slots=slots,
            seconds=round(time.monotonic() - begun, 3),
        )
        return engine

    async def _close_engine(self, engine: Engine) -> None:
        engine.close()
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await engine.admission.empty()
        except TimeoutError:
            # A model must not be freed under a thread that still computes with it.
            _log.error("model_does_not_stop", busy_slots=engine.admission.busy)
            self._loaded = False
