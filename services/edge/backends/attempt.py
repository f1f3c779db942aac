"""One attempt of one segment at one replica.

Owns: one `Synthesize` call from its start to its end, its time limits, its cancellation, and that
what comes is a valid stream. Does not own: another attempt (`tts`), the choice of the replica
(`pool`). Enforces: IO-INV-100 and IO-INV-101 (through `contracts.accumulation`), WEIR-133 (a call
is cancelled at most once, and never left running).
"""

from __future__ import annotations

import asyncio

import grpc.aio
from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from contracts.accumulation import SegmentStream
from contracts.errors import Failure, Reason, WeirError, failure
from contracts.modality import IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.backends.progress import VIOLATED
from services.edge.backends.wire import ResponseReader, WireError, segment_request
from services.runtime.errors import failure_of_rpc_error
from services.runtime.logging import get_logger

_log = get_logger(__name__)

SILENT = failure(Reason.BACKEND_UNAVAILABLE, "The backend did not answer in time.")
STALLED = failure(Reason.DEADLINE_EXCEEDED, "The backend stopped sending.")


class Attempt:
    """One call. Read it with `next` until None, within `services.runtime.channel.owned_call`."""

    __slots__ = ("_accept_by", "_call", "_identity", "_reader", "_stall_s", "_stream")

    def __init__(
        self,
        channel: grpc.aio.Channel,
        request: SegmentRequest,
        *,
        accept_timeout_s: float,
        stall_timeout_s: float,
    ) -> None:
        self._identity = request.identity
        self._stream = SegmentStream(request)
        self._reader = ResponseReader(request.identity)
        self._accept_by = asyncio.get_running_loop().time() + accept_timeout_s
        self._stall_s = stall_timeout_s
        self._call: grpc.aio.UnaryStreamCall[
            tts_pb2.SynthesizeRequest, tts_pb2.SynthesizeResponse
        ] = tts_pb2_grpc.TtsServiceStub(channel).Synthesize(segment_request(request))

    @property
    def accepted(self) -> bool:
        """True once the replica has taken the segment."""
        return self._stream.accepted

    async def next(self) -> IdentifiedUpdate | None:
        """Return the next update; None when the stream has ended in good order.

        Raises WeirError with what the replica said, with BACKEND_UNAVAILABLE when it was silent
        before it accepted, with DEADLINE_EXCEEDED when it was afterwards, with INTERNAL when what
        it sent is not a valid stream.
        """
        while True:
            response = await self._read()
            try:
                if response is grpc.aio.EOF:
                    self._stream.end()
                    return None
                if not isinstance(response, tts_pb2.SynthesizeResponse):
                    # grpc.aio hands out None for bytes that do not parse.
                    raise WireError("the response is not a message")
                update = self._reader.read(response)
                if update is None:  # WEIR-302: a kind of update that this edge does not know
                    continue
                self._stream.receive(update)
            except ValueError as violation:
                _log.error("contract_broken", violation=str(violation), **self._names())
                raise WeirError(VIOLATED) from violation
            return update

    def cancel(self) -> bool:
        """End the call unless it has ended; True when this did it."""
        # WEIR-133: grpc.aio itself cancels a call whose read is cancelled; it is done then.
        return not self._call.done() and self._call.cancel()

    async def _read(self) -> object:
        """Return what grpc.aio read: a message, EOF, or None."""
        accepted = self._stream.accepted
        loop = asyncio.get_running_loop()
        until = loop.time() + self._stall_s if accepted else self._accept_by
        try:
            async with asyncio.timeout_at(until):
                return await self._call.read()
        except TimeoutError:
            raise WeirError(STALLED if accepted else SILENT) from None
        except grpc.aio.AioRpcError as error:
            raise WeirError(self._verdict(error)) from error

    def _verdict(self, error: grpc.aio.AioRpcError) -> Failure:
        verdict = failure_of_rpc_error(error)
        _log.info(
            "attempt_failed",
            reason=verdict.reason.value,
            code=verdict.code.name,
            accepted=self.accepted,
            **self._names(),
        )
        return verdict

    def _names(self) -> dict[str, object]:
        identity = self._identity
        return {"request_id": identity.request_id, "attempt": identity.attempt}
