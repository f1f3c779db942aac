"""The speech service in this process, served on a port of its own.

Owns: starting and ending a `TtsProcess` around an adapter of the test, and reading whole streams.
Does not own: the process as an operator starts it (`test_process`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import grpc.aio
from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from contracts.errors import Failure
from services.runtime.channel import open_channel, owned_call
from services.runtime.errors import failure_of_rpc_error
from services.runtime.metrics import Metrics
from services.runtime.settings import read_settings
from services.tts.adapters.base import VoiceAdapter
from services.tts.metrics import TtsMetrics
from services.tts.process import TtsProcess
from services.tts.settings import TtsSettings

PATIENCE_S = 10.0
"""Longest wait for something that must come."""

Call = grpc.aio.UnaryStreamCall[tts_pb2.SynthesizeRequest, tts_pb2.SynthesizeResponse]


@dataclass(frozen=True, slots=True)
class Replica:
    """One served process with a channel to it."""

    process: TtsProcess
    metrics: Metrics
    channel: grpc.aio.Channel
    stub: tts_pb2_grpc.TtsServiceAsyncStub

    @property
    def busy(self) -> int:
        """Slots in use."""
        assert self.process.engine is not None
        return self.process.engine.admission.busy

    @property
    def queued(self) -> int:
        """Requests that wait."""
        assert self.process.engine is not None
        return self.process.engine.admission.queued

    async def idle(self) -> None:
        """Return when every slot is free; fail when that takes longer than a second."""
        assert self.process.engine is not None
        async with asyncio.timeout(1.0):
            await self.process.engine.admission.empty()


def make_process(adapter: VoiceAdapter, **environ: str) -> tuple[TtsProcess, Metrics]:
    """Return a process that is not started; `environ` are settings without their prefix."""
    settings = read_settings(TtsSettings, {f"TTS_{name}": value for name, value in environ.items()})
    metrics = Metrics("tts")
    return TtsProcess(settings, adapter, TtsMetrics(metrics)), metrics


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[tts_pb2_grpc.TtsServiceAsyncStub]:
    """Open a channel of its own to `address`."""
    async with open_channel(address) as channel:
        yield tts_pb2_grpc.TtsServiceStub(channel)


@asynccontextmanager
async def serving(adapter: VoiceAdapter, **environ: str) -> AsyncIterator[Replica]:
    """Serve `adapter` for the length of the scope."""
    process, metrics = make_process(adapter, **environ)
    try:
        address = await process.start()
        async with open_channel(address) as channel:
            yield Replica(process, metrics, channel, tts_pb2_grpc.TtsServiceStub(channel))
    finally:
        await process.close()


@asynccontextmanager
async def speaking(
    stub: tts_pb2_grpc.TtsServiceAsyncStub,
    request: tts_pb2.SynthesizeRequest,
    timeout_s: float = PATIENCE_S,
) -> AsyncIterator[Call]:
    """Start a call that ends with the scope."""
    async with owned_call(stub.Synthesize(request, timeout=timeout_s)) as call:
        yield call


async def next_of(call: Call) -> tts_pb2.SynthesizeResponse | None:
    """Return the next response, None at the end. Raises what the call ends with."""
    response = await call.read()
    return response if isinstance(response, tts_pb2.SynthesizeResponse) else None


async def kind_of_next(call: Call) -> str | None:
    """Return which update comes next, None at the end. Raises what the call ends with."""
    response = await next_of(call)
    return None if response is None else response.WhichOneof("update")


async def updates_of(call: Call) -> list[tts_pb2.SynthesizeResponse]:
    """Return everything that is still to come. Raises what the call ends with."""
    responses: list[tts_pb2.SynthesizeResponse] = []
    while (response := await next_of(call)) is not None:
        responses.append(response)
    return responses


async def outcome_of(call: Call) -> tuple[list[str], Failure | None]:
    """Return the kinds of updates still to come and the failure the call ends with, if any."""
    kinds: list[str] = []
    try:
        while (kind := await kind_of_next(call)) is not None:
            kinds.append(kind)
    except grpc.aio.AioRpcError as error:
        return kinds, failure_of_rpc_error(error)
    return kinds, None


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until `condition` holds: for what no event tells. Fails after a while."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # metrics and counts have no event to wait for
            await asyncio.sleep(0)


def audio_of(responses: list[tts_pb2.SynthesizeResponse]) -> bytes:
    """Return the bytes of all audio chunks."""
    return b"".join(response.audio_chunk.data for response in responses)
