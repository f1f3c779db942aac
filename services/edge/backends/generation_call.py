"""One attempt of one generation at one replica.

Owns: one `StreamGenerate` call from its config to its end, its one writer, its cancellation, and
that what comes is a valid stream. Does not own: another attempt (`video`), the choice of the
replica (`pool`), how long a generation may take (the session). Enforces: WEIR-179 (nothing is
written before the replica has accepted; the outcome is the verdict, and after it the call is
half-closed and read to its end), WEIR-133 (a call is never left running).
"""

from __future__ import annotations

import asyncio
import contextlib

import grpc.aio
from weir.video.v1 import video_pb2, video_pb2_grpc

from contracts.errors import Failure, WeirError
from contracts.generation import Credit, GenerationRequest, GenerationUpdate
from services.edge.backends.attempt import SILENT
from services.edge.backends.controls import ControlQueue
from services.edge.backends.generation_stream import GenerationStream
from services.edge.backends.generation_wire import (
    GenerationReader,
    config_message,
    control_message,
)
from services.edge.backends.progress import VIOLATED
from services.edge.backends.wire import WireError
from services.runtime.errors import failure_of_rpc_error
from services.runtime.logging import get_logger
from services.runtime.tasks import cancel_and_wait

_log = get_logger(__name__)

_END_S = 2.0
"""Time in which the replica ends a call whose outcome has come; then it is cancelled."""


class GenerationCall:
    """One call. Read it with `next` until None, within `owned_call`; then `close` it."""

    def __init__(self, channel: grpc.aio.Channel, request: GenerationRequest) -> None:
        self._request = request
        self._stream = GenerationStream(request.initial_credits)
        self._reader = GenerationReader(request.identity)
        self._controls: ControlQueue | None = None
        self._writer: asyncio.Task[None] | None = None
        self._call: grpc.aio.StreamStreamCall[
            video_pb2.StreamGenerateRequest, video_pb2.StreamGenerateResponse
        ] = video_pb2_grpc.VideoServiceStub(channel).StreamGenerate()

    @property
    def accepted(self) -> bool:
        """True once the replica has taken the generation."""
        return self._stream.accepted

    async def begin(self, timeout_s: float) -> GenerationUpdate:
        """Send the config and return the acceptance.

        Raises WeirError with what the replica said, or BACKEND_UNAVAILABLE when it was silent.
        """
        try:
            async with asyncio.timeout(timeout_s):
                # A write that fails tells nothing: the read that follows has the verdict.
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await self._call.write(config_message(self._request))
                update = await self._read()
        except TimeoutError:
            raise WeirError(SILENT) from None
        if update is None:
            raise WeirError(VIOLATED)
        return update

    def control(self, controls: ControlQueue) -> None:
        """Write controls from now on, until the outcome or `close`."""
        # WEIR-179: begun after the acceptance only.
        self._controls = controls
        self._writer = asyncio.create_task(self._write(controls), name="video-control-writer")

    async def next(self) -> GenerationUpdate | None:
        """Return the next update; None when the outcome has been given.

        Raises WeirError with what the replica said when it ended without an outcome, INTERNAL when
        what it sent is not a valid stream.
        """
        if self._stream.ended:
            return None
        update = await self._read()
        if update is None:
            raise WeirError(VIOLATED)
        if self._stream.ended:
            await self._end()
        return update

    def cancel(self) -> bool:
        """End the call unless it has ended; True when this did it."""
        return not self._call.done() and self._call.cancel()

    async def close(self) -> None:
        """Leave no writer behind."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await cancel_and_wait(writer, timeout_s=_END_S)

    async def _write(self, controls: ControlQueue) -> None:
        try:
            while (control := await controls.next()) is not None:
                if isinstance(control, Credit):
                    self._stream.grant(control.chunks)  # before the replica can have used it
                await self._call.write(control_message(control))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # WEIR-179: the verdict is read, never guessed from a write that failed.
            controls.end()

    async def _read(self) -> GenerationUpdate | None:
        """Return the next update that this edge knows; None when the stream is over."""
        while True:
            try:
                response = await self._call.read()
            except grpc.aio.AioRpcError as error:
                raise WeirError(self._verdict(error)) from error
            if response is grpc.aio.EOF:
                return None
            try:
                if not isinstance(response, video_pb2.StreamGenerateResponse):
                    # grpc.aio hands out None for bytes that do not parse.
                    raise WireError("the response is not a message")
                update = self._reader.read(response)
                if update is None:  # WEIR-302
                    continue
                self._stream.receive(update)
            except ValueError as violation:
                _log.error("contract_broken", violation=str(violation), **self._names())
                raise WeirError(VIOLATED) from violation
            return update

    async def _end(self) -> None:
        """Half-close and let the replica end the call; it has nothing to say any more."""
        if self._controls is not None:
            self._controls.end()
        # WEIR-179: whatever happens from here on, the outcome stands.
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError):
            async with asyncio.timeout(_END_S):
                if self._writer is not None:
                    # Cancelling a write cancels the whole call, so it is let go to its end.
                    await asyncio.shield(self._writer)
                await self._call.done_writing()
                while await self._call.read() is not grpc.aio.EOF:
                    pass

    def _verdict(self, error: grpc.aio.AioRpcError) -> Failure:
        verdict = failure_of_rpc_error(error)
        _log.info(
            "generation_call_failed",
            reason=verdict.reason.value,
            code=verdict.code.name,
            accepted=self.accepted,
            **self._names(),
        )
        return verdict

    def _names(self) -> dict[str, object]:
        identity = self._request.identity
        return {"request_id": identity.request_id, "attempt": identity.attempt}
