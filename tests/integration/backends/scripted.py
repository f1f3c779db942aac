"""Scripted TTS replicas: real gRPC servers on 127.0.0.1 whose answers a test writes.

Owns: servers, a relay whose connections can be cut, and the usual scripts. Does not own: the
synthesis service itself; these replicas speak its protocol and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
from google.protobuf.message import Message
from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from contracts.capabilities import SpeechCapabilities, TextCommitmentCapabilities, Voice
from contracts.errors import GrpcCode, Reason, failure
from contracts.identity import SegmentIdentity
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    Outcome,
    SpeechUpdate,
    Usage,
)
from services.runtime.errors import abort
from services.tts.replies import capabilities_reply, reply

Context = grpc.aio.ServicerContext[Any, Any]
Script = Callable[[tts_pb2.SynthesizeRequest, Context], AsyncIterator[tts_pb2.SynthesizeResponse]]

FORMAT = AudioFormat(AudioEncoding.PCM, 24000)
PATIENCE_S = 20.0
"""How long a test waits for an event that has to come."""

COMMITMENT = TextCommitmentCapabilities(
    profile="zh_en_special_v1",
    languages=("English", "Chinese"),
    independent_segments=True,
    context_preservation=False,
    audio_streaming=True,
    word_timestamps=False,
    failed_segment_retries=True,
)

CAPABILITIES = SpeechCapabilities(
    model="tone",
    sample_rate_hz=24000,
    languages=("English", "Chinese"),
    voices=(Voice("ada", ("English",)), Voice("bo", ("Chinese",))),
    default_voice="ada",
    max_text_characters=1000,
    audio_streaming=True,
    text_commitment=(COMMITMENT,),
)


def identity_of(request: tts_pb2.SynthesizeRequest) -> SegmentIdentity:
    """Return the identity that a request carries."""
    who = request.identity
    return SegmentIdentity(
        who.session_id, who.request_id, who.utterance_index, who.segment_index, who.attempt
    )


def say(request: tts_pb2.SynthesizeRequest, update: SpeechUpdate) -> tts_pb2.SynthesizeResponse:
    """Write one update in answer to `request`."""
    return reply(identity_of(request), update)


def whole(chunks: int = 3, format: AudioFormat = FORMAT) -> list[SpeechUpdate]:
    """Return a complete, valid stream of `chunks` chunks of four samples of PCM."""
    audio = [AudioChunk(index, bytes([index] * 8)) for index in range(chunks)]
    return [
        Accepted(format),
        *audio,
        AudioCompleted(chunks, 8 * chunks, 4 * chunks),
        Outcome(Usage(5, 1, 1, 0)),
    ]


def speaks(updates: list[SpeechUpdate] | None = None) -> Script:
    """Answer with these updates, a whole stream by default, and OK."""

    async def script(
        request: tts_pb2.SynthesizeRequest, context: Context
    ) -> AsyncIterator[tts_pb2.SynthesizeResponse]:
        for update in whole() if updates is None else updates:
            yield say(request, update)

    return script


def fails(
    reason: Reason,
    *,
    after: list[SpeechUpdate] | None = None,
    code: GrpcCode | None = None,
    retry_after_ms: int | None = None,
) -> Script:
    """Answer with `after`, then end with a failure."""

    async def script(
        request: tts_pb2.SynthesizeRequest, context: Context
    ) -> AsyncIterator[tts_pb2.SynthesizeResponse]:
        for update in after or []:
            yield say(request, update)
        await abort(
            context, failure(reason, "As scripted.", code=code, retry_after_ms=retry_after_ms)
        )

    return script


@dataclass
class Held:
    """A script that says `first` and then holds still until it is cancelled or released."""

    first: list[SpeechUpdate]
    then: list[SpeechUpdate] = field(default_factory=list)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    cancellations: int = 0

    async def __call__(
        self, request: tts_pb2.SynthesizeRequest, context: Context
    ) -> AsyncIterator[tts_pb2.SynthesizeResponse]:
        try:
            for update in self.first:
                yield say(request, update)
            self.holding.set()
            await self.release.wait()
            for update in self.then:
                yield say(request, update)
        except (asyncio.CancelledError, GeneratorExit):
            self.cancellations += 1
            self.cancelled.set()
            raise


class Replica(tts_pb2_grpc.TtsServiceServicer):
    """One scripted replica. The n-th request meets the n-th script; the last one repeats."""

    def __init__(
        self, *scripts: Script, capabilities: SpeechCapabilities | None = CAPABILITIES
    ) -> None:
        self.scripts = list(scripts) or [speaks()]
        self.capabilities = capabilities
        self.requests: list[tts_pb2.SynthesizeRequest] = []
        self.asked = 0
        self._asked = asyncio.Condition()
        self.server = grpc.aio.server()
        self.port = 0

    @property
    def attempts(self) -> list[int]:
        """Attempt numbers of the requests that came here."""
        return [request.identity.attempt for request in self.requests]

    async def asked_times(self, times: int) -> None:
        """Wait until the capabilities have been asked for that often."""
        async with asyncio.timeout(PATIENCE_S), self._asked:
            await self._asked.wait_for(lambda: self.asked >= times)

    async def Synthesize(  # noqa: N802  # the name is the proto's
        self, request: tts_pb2.SynthesizeRequest, context: Context
    ) -> AsyncIterator[tts_pb2.SynthesizeResponse]:
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        async for response in script(request, context):
            yield response

    async def GetCapabilities(  # noqa: N802  # the name is the proto's
        self, request: tts_pb2.GetCapabilitiesRequest, context: Context
    ) -> tts_pb2.GetCapabilitiesResponse:
        async with self._asked:
            self.asked += 1
            self._asked.notify_all()
        if self.capabilities is None:
            await abort(context, failure(Reason.BACKEND_UNAVAILABLE, "Still loading."))
        return capabilities_reply(self.capabilities)

    async def start(self, port: int = 0) -> None:
        """Listen; with `port` at a place where another replica was before."""
        tts_pb2_grpc.add_TtsServiceServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        await self.server.start()


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[tuple[str, ...]]:
    """Run replicas; give their targets."""
    for replica in replicas:
        await replica.start()
    try:
        yield tuple(f"127.0.0.1:{replica.port}" for replica in replicas)
    finally:
        for replica in replicas:
            await replica.server.stop(None)


class Relay:
    """Passes bytes to a port and back until its connections are cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self.refusing = False

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection, as when a machine goes away."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, far_writer]
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()
        except OSError:
            sink.transport.abort()


def with_unknown(message: Message, number: int = 900) -> bytes:
    """Serialize a message with a field of a newer version: length-delimited, under `number`."""
    tag = (number << 3) | 2
    encoded = bytearray()
    while tag > 0x7F:
        encoded.append(tag & 0x7F | 0x80)
        tag >>= 7
    encoded.append(tag)
    return message.SerializeToString() + bytes(encoded) + b"\x03new"
