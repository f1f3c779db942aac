"""The gRPC face of the speech service.

Owns: `TtsService` as protos/weir/tts/v1/tts.proto documents it: one call, one segment, and the time
a call may take. Does not own: statuses (the error scope of `services.runtime` makes them of what is
raised here), the life of a segment (`services.tts.engine`). Enforces: IO-INV-100 (every answer
repeats the identity), IO-INV-101 (a failure sends no outcome), WEIR-195 (whatever ends a call ends
its segment).
"""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import aclosing
from typing import Any

import grpc.aio
from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from contracts.errors import Reason, WeirError, failure
from contracts.speech import SegmentRequest
from services.runtime.errors import refuse_unknown_fields
from services.runtime.logging import get_logger, log_context
from services.tts.engine import Engine, Synthesis
from services.tts.metrics import TtsMetrics
from services.tts.replies import capabilities_reply, reply
from services.tts.settings import CallSettings
from services.tts.wire import read_request

Context = grpc.aio.ServicerContext[Any, Any]

_log = get_logger(__name__)
_LARGE_REQUEST_BYTES = 64 * 1024
"""Beyond this, reading a request takes longer than the event loop should be held."""

_CANCELLATION_S = 1.0
"""Longest time from a write that fails to the cancellation of its handler."""


class TtsServicer(tts_pb2_grpc.TtsServiceServicer):
    """Speaks with the engine that `serve` gives it; until then the model is not there."""

    def __init__(self, settings: CallSettings, metrics: TtsMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._engine: Engine | None = None

    def serve(self, engine: Engine) -> None:
        """Answer from now on with `engine`."""
        self._engine = engine

    async def Synthesize(  # type: ignore[override]  # noqa: N802  # gRPC's name, writing form
        self, request: tts_pb2.SynthesizeRequest, context: Context
    ) -> None:
        """Speak one segment.

        It writes instead of yielding: only a write can be given a time in which it must be done.
        Raises WeirError, which ends the call with a status.
        """
        synthesis: Synthesis | None = None
        try:
            segment = await _read(request)
            identity = segment.identity
            with log_context(request_id=identity.request_id, session_id=identity.session_id):
                async with asyncio.timeout(self._settings.max_call_s):
                    synthesis = self._ready().begin(segment)
                    await self._speak(segment, synthesis, context)
        except TimeoutError:
            self._count(Reason.DEADLINE_EXCEEDED, synthesis)
            raise WeirError(
                failure(Reason.DEADLINE_EXCEEDED, "The segment took longer than a call may take.")
            ) from None
        except WeirError as error:
            self._count(error.failure.reason, synthesis)
            raise
        except Exception:
            self._count(Reason.INTERNAL, synthesis)
            raise
        except asyncio.CancelledError:
            if synthesis is not None:
                self._metrics.cancellations.inc()
            raise
        finally:
            if synthesis is not None:
                synthesis.cancel()  # WEIR-195: idempotent, and nothing after a normal end.

    async def GetCapabilities(  # noqa: N802  # gRPC's name
        self, request: tts_pb2.GetCapabilitiesRequest, context: Context
    ) -> tts_pb2.GetCapabilitiesResponse:
        """Tell what the model can do. Raises WeirError (BACKEND_UNAVAILABLE) until it is loaded."""
        refuse_unknown_fields(request)
        return capabilities_reply(self._ready().capabilities)

    def _ready(self) -> Engine:
        if self._engine is None:
            raise WeirError(
                failure(
                    Reason.BACKEND_UNAVAILABLE,
                    "The voice model of the replica is not loaded yet.",
                    retry_after_ms=1000,
                )
            )
        return self._engine

    async def _speak(self, segment: SegmentRequest, synthesis: Synthesis, context: Context) -> None:
        identity = segment.identity
        await self._write(context, reply(identity, synthesis.accepted))
        async with aclosing(synthesis.updates()) as updates:
            async for update in updates:
                await self._write(context, reply(identity, update))
        self._metrics.completions.inc()

    async def _write(self, context: Context, message: tts_pb2.SynthesizeResponse) -> None:
        try:
            # A reader that stalls holds a slot, so it may stall only so long.
            async with asyncio.timeout(self._settings.send_stall_s):
                await context.write(message)
        except grpc.aio.InternalError:
            # A write fails when the caller has gone; the cancellation that says so comes next.
            await asyncio.sleep(_CANCELLATION_S)
            raise

    def _count(self, reason: Reason, synthesis: Synthesis | None) -> None:
        if synthesis is None:
            self._metrics.refused(reason)
        else:
            self._metrics.failed(reason)


async def _read(request: tts_pb2.SynthesizeRequest) -> SegmentRequest:
    if request.ByteSize() < _LARGE_REQUEST_BYTES:
        return read_request(request)
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(
        None, context.run, read_request, request
    )
