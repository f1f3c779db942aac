"""The gRPC face of the video service.

Owns: `VideoService` as protos/weir/video/v1/video.proto documents it: one call, one generation, its
messages in both directions and the time it may take. Does not own: how a stream ends and statuses
(`services.runtime`), the life of a generation (`services.video.run`). Enforces: IO-INV-100 (every
answer repeats the identity), IO-INV-101 (the outcome comes last), WEIR-239 (whatever ends a call
ends its generation).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, assert_never

import grpc.aio
from weir.video.v1 import video_pb2, video_pb2_grpc

from contracts.errors import Reason, WeirError, failure
from contracts.generation import (
    Chunk,
    Control,
    Credit,
    GenerationRequest,
    Interaction,
    InteractionRefused,
    Outcome,
    Pause,
    Playback,
    Resume,
    Stop,
)
from services.runtime.errors import refuse_unknown_fields
from services.runtime.logging import get_logger, log_context
from services.runtime.stream_end import RequestReader, end_stream
from services.runtime.tasks import cancel_and_wait
from services.video.ending import INTERNAL
from services.video.engine import Engine
from services.video.metrics import VideoMetrics
from services.video.replies import capabilities_reply, reply
from services.video.run import Run
from services.video.settings import CallSettings
from services.video.wire import InteractionError, read_config, read_control

Context = grpc.aio.ServicerContext[Any, Any]
Reader = RequestReader[video_pb2.StreamGenerateRequest]

_log = get_logger(__name__)

TOO_LONG = failure(Reason.DEADLINE_EXCEEDED, "The generation took longer than a call may take.")
NOT_READ = failure(Reason.DEADLINE_EXCEEDED, "The reader took too long for one message.")
NO_CONFIG = failure(Reason.DEADLINE_EXCEEDED, "The call sent no config in time.")

_CANCELLATION_S = 1.0
"""Longest time from a write that fails to the cancellation of its handler."""
_LEAVE_S = 2.0
"""Longest time that an outcome waits for its slot to be free."""


class VideoServicer(video_pb2_grpc.VideoServiceServicer):
    """Generates with the engine that `serve` gives it; until then the model is not there."""

    def __init__(self, settings: CallSettings, metrics: VideoMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._engine: Engine | None = None

    def serve(self, engine: Engine) -> None:
        """Answer from now on with `engine`."""
        self._engine = engine

    async def StreamGenerate(  # type: ignore[override]  # noqa: N802  # gRPC's name, writing form
        self,
        request_iterator: AsyncIterator[video_pb2.StreamGenerateRequest],
        context: Context,
    ) -> None:
        """Run one generation.

        It writes instead of yielding: only a write can be given a time in which it must be done.
        Raises WeirError before `accepted`, which ends the call with a status.
        """
        reader: Reader = RequestReader(request_iterator)
        try:
            request = await self._config(reader)
            identity = request.identity
            with log_context(request_id=identity.request_id, session_id=identity.session_id):
                await self._generate(request, reader, context)
        finally:
            await reader.close()

    async def GetCapabilities(  # noqa: N802  # gRPC's name
        self, request: video_pb2.GetCapabilitiesRequest, context: Context
    ) -> video_pb2.GetCapabilitiesResponse:
        """Tell what the model can do. Raises WeirError (BACKEND_UNAVAILABLE) until it is loaded."""
        refuse_unknown_fields(request)
        return capabilities_reply(self._ready().capabilities)

    def _ready(self) -> Engine:
        if self._engine is None:
            raise WeirError(
                failure(
                    Reason.BACKEND_UNAVAILABLE,
                    "The video model of the replica is not loaded yet.",
                    retry_after_ms=1000,
                )
            )
        return self._engine

    async def _config(self, reader: Reader) -> GenerationRequest:
        try:
            async with asyncio.timeout(self._settings.config_s):
                first = await reader.next()
            return read_config(video_pb2.StreamGenerateRequest() if first is None else first)
        except TimeoutError:
            self._metrics.refused(NO_CONFIG.reason)
            raise WeirError(NO_CONFIG) from None
        except WeirError as error:
            self._metrics.refused(error.failure.reason)
            raise

    async def _generate(self, request: GenerationRequest, reader: Reader, context: Context) -> None:
        try:
            engine = self._ready()
            run = await engine.begin(request)
        except WeirError as error:
            self._metrics.refused(error.failure.reason)
            raise
        deadline = asyncio.get_running_loop().call_later(
            self._settings.max_call_s, run.fail, TOO_LONG
        )
        reading = asyncio.create_task(self._obey(engine, run, reader), name="read requests")
        try:
            outcome = await self._send(request, run, context)
            await cancel_and_wait(reading, timeout_s=_CANCELLATION_S)
            await end_stream(context, reader, reply(request.identity, outcome), outcome.failure)
        except asyncio.CancelledError:
            if not run.left.is_set():
                self._metrics.cancellations.inc()
            raise
        finally:
            deadline.cancel()
            engine.end(run)  # WEIR-239: idempotent, and nothing after a normal end.
            reading.cancel()

    async def _send(self, request: GenerationRequest, run: Run, context: Context) -> Outcome:
        """Send everything up to the outcome, and return that."""
        while True:
            update = await run.outbox.get()
            if isinstance(update, Outcome):
                break
            await self._write(context, reply(request.identity, update))
            if isinstance(update, Chunk):
                run.sent()
        # Who hears of an end may come back at once and must find the slot free.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await run.left.wait()
        if update.failure is None:
            self._metrics.completions.inc()
        else:
            self._metrics.failed(update.failure.reason)
        return update

    async def _write(self, context: Context, message: video_pb2.StreamGenerateResponse) -> None:
        try:
            # A reader that stalls holds a slot, so it may stall only so long.
            async with asyncio.timeout(self._settings.send_stall_s):
                await context.write(message)
        except TimeoutError:
            self._metrics.failed(NOT_READ.reason)
            raise WeirError(NOT_READ) from None
        except grpc.aio.InternalError:
            # A write fails when the caller has gone; the cancellation that says so comes next.
            await asyncio.sleep(_CANCELLATION_S)
            raise

    async def _obey(self, engine: Engine, run: Run, reader: Reader) -> None:
        """Do what the client asks for, message by message, until it half-closes."""
        try:
            while (message := await reader.next()) is not None:
                await run.outbox.room()
                _carry_out(engine, run, read_control(message))
        except WeirError as error:
            run.fail(error.failure)
        except Exception as error:
            _log.error("requests_not_read", error=error)
            run.fail(INTERNAL)
        else:
            # A half-close is a stop.
            run.stop()


def _carry_out(engine: Engine, run: Run, control: Control | InteractionError) -> None:
    match control:
        case InteractionError():
            run.outbox.post(InteractionRefused(control.event_id, control.failure))
        case Interaction():
            engine.interact(run, control)
        case Credit():
            run.grant(control.chunks)
        case Pause():
            run.pause()
        case Resume():
            run.resume()
        case Playback():
            run.report(control.position_seconds)
        case Stop():
            run.stop()
        case _:
            assert_never(control)
