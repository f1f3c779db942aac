"""What a backend must not send, and what a newer one may: against real gRPC servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import grpc.aio
import pytest
from weir.tts.v1 import tts_pb2

from contracts.errors import GrpcCode, Reason
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    SpeechUpdate,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from services.tts.replies import capabilities_reply, reply
from tests.integration.backends.scripted import (
    CAPABILITIES,
    FORMAT,
    Context,
    Replica,
    identity_of,
    running,
    say,
    speaks,
    whole,
    with_unknown,
)
from tests.integration.backends.support import REQUEST, audio_of, backend, collect, failure_of

ACCEPTED, CHUNK_0, CHUNK_1, CHUNK_2, TERMINAL, OUTCOME = whole()
WORD = WordTimes((WordTime("Hello", 0, 10),))


@pytest.mark.parametrize(
    "updates",
    [
        pytest.param([], id="nothing at all"),
        pytest.param([CHUNK_0], id="audio before accepted"),
        pytest.param([ACCEPTED, ACCEPTED], id="accepted twice"),
        pytest.param([Accepted(AudioFormat(AudioEncoding.WAV, 24000))], id="another encoding"),
        pytest.param([Accepted(AudioFormat(AudioEncoding.PCM, 0))], id="no true rate"),
        pytest.param([ACCEPTED, CHUNK_1], id="a gap"),
        pytest.param([ACCEPTED, CHUNK_0, CHUNK_0], id="a chunk twice"),
        pytest.param([ACCEPTED, AudioChunk(0, b"abc")], id="a broken sample"),
        pytest.param([ACCEPTED, CHUNK_0, AudioCompleted(1, 9, 4)], id="other bytes counted"),
        pytest.param([ACCEPTED, CHUNK_0, AudioCompleted(1, 8, 5)], id="other samples counted"),
        pytest.param([ACCEPTED, AudioCompleted(0, 0, 0), CHUNK_0], id="partial after terminal"),
        pytest.param([ACCEPTED, AudioCompleted(0, 0, 0)] * 2, id="a second terminal"),
        pytest.param([ACCEPTED, CHUNK_0, OUTCOME], id="an outcome without the terminal"),
        pytest.param([*whole(), CHUNK_0], id="an update after the outcome"),
        pytest.param([ACCEPTED, CHUNK_0], id="no terminal"),
        pytest.param(whole()[:-1], id="no outcome"),
        pytest.param([ACCEPTED, WORD], id="word times that nobody asked for"),
    ],
)
async def test_a_stream_that_breaks_the_order_fails_the_segment(
    updates: list[SpeechUpdate],
) -> None:
    """IO-INV-101, WEIR-120, WEIR-121, WEIR-122, WEIR-124: SEGMENT_FAILED with INTERNAL, once."""
    replica = Replica(speaks(updates))
    async with running(replica) as targets, backend(targets) as subject:
        failed = await failure_of(subject, retry_after_accept=True)
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.INTERNAL)
    assert failed.message == "The segment could not be synthesized."
    assert replica.attempts == [1]  # a broken contract is not tried again


def _foreign_request(response: tts_pb2.SynthesizeResponse) -> None:
    response.identity.request_id = "request-2"


def _foreign_attempt(response: tts_pb2.SynthesizeResponse) -> None:
    response.identity.attempt = 2


def _no_identity(response: tts_pb2.SynthesizeResponse) -> None:
    response.ClearField("identity")


def _no_modality(response: tts_pb2.SynthesizeResponse) -> None:
    response.audio_chunk.ClearField("modality")


def _wrong_modality(response: tts_pb2.SynthesizeResponse) -> None:
    response.audio_chunk.modality = 3  # type: ignore[assignment]  # MODALITY_VIDEO


def _unknown_modality(response: tts_pb2.SynthesizeResponse) -> None:
    response.audio_chunk.modality = 99  # type: ignore[assignment]  # of a newer version


def _empty_data(response: tts_pb2.SynthesizeResponse) -> None:
    response.audio_chunk.data = b""


@pytest.mark.parametrize(
    "spoil",
    [
        _foreign_request,
        _foreign_attempt,
        _no_identity,
        _no_modality,
        _wrong_modality,
        _unknown_modality,
        _empty_data,
    ],
)
async def test_a_response_that_does_not_say_what_it_is_fails_the_segment(
    spoil: Callable[[tts_pb2.SynthesizeResponse], None],
) -> None:
    """IO-INV-001, IO-INV-100: a foreign identity or modality is not taken for ours."""

    async def script(
        request: tts_pb2.SynthesizeRequest, context: Context
    ) -> AsyncIterator[tts_pb2.SynthesizeResponse]:
        yield say(request, ACCEPTED)
        response = say(request, CHUNK_0)
        spoil(response)
        yield response

    async with running(Replica(script)) as targets, backend(targets) as subject:
        failed = await failure_of(subject)
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.INTERNAL)


async def test_word_times_come_when_they_were_asked_for() -> None:
    """IO-INV-101: each modality has its own terminal, in whatever order the two end."""
    updates = [ACCEPTED, CHUNK_0, WORD, AudioCompleted(1, 8, 4), WordTimesCompleted(1, True)]
    updates.append(OUTCOME)
    request = replace(REQUEST, options=replace(REQUEST.options, word_times=True))
    async with running(Replica(speaks(updates))) as targets, backend(targets) as subject:
        given = await collect(subject, request)
    assert [update.update for update in given] == updates


class RawReplica:
    """A replica that answers with bytes, so that it can be newer than our stubs, or broken."""

    def __init__(self, script: Callable[[tts_pb2.SynthesizeRequest], list[bytes]]) -> None:
        self._script = script
        self._server = grpc.aio.server()

    async def _synthesize(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        for response in self._script(tts_pb2.SynthesizeRequest.FromString(request)):
            yield response

    async def _capabilities(self, request: bytes, context: Context) -> bytes:
        return with_unknown(capabilities_reply(CAPABILITIES))

    async def __aenter__(self) -> str:
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Synthesize": grpc.unary_stream_rpc_method_handler(self._synthesize),
            "GetCapabilities": grpc.unary_unary_rpc_method_handler(self._capabilities),
        }
        self._server.add_registered_method_handlers("weir.tts.v1.TtsService", handlers)
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return f"127.0.0.1:{port}"

    async def __aexit__(self, *exc_info: object) -> None:
        await self._server.stop(None)


def _newer(request: tts_pb2.SynthesizeRequest) -> list[bytes]:
    """Write a whole stream as a newer service would: more fields, one more kind of update."""
    responses = [say(request, update) for update in whole()]
    for response in responses:
        response.identity.MergeFromString(with_unknown(response.identity))
    written = [with_unknown(response) for response in responses]
    unknown_update = tts_pb2.SynthesizeResponse(identity=responses[0].identity)
    return [written[0], with_unknown(unknown_update), *written[1:]]


async def test_unknown_fields_and_unknown_updates_of_a_newer_service_are_ignored() -> None:
    """WEIR-302: services are upgraded first, so an older edge must read their responses."""
    async with RawReplica(_newer) as target, backend((target,)) as subject:
        capabilities = subject.capabilities()
        updates = await collect(subject)
    assert capabilities == CAPABILITIES
    assert [update.update for update in updates] == whole()
    assert audio_of(updates)


async def test_bytes_that_are_no_message_fail_the_segment() -> None:
    """WEIR-210: grpc.aio hands None to the reader for them; that is not an end."""

    def garbage(request: tts_pb2.SynthesizeRequest) -> list[bytes]:
        accepted = reply(identity_of(request), Accepted(FORMAT)).SerializeToString()
        return [accepted, b"\xff\xff\xff\xff"]

    async with RawReplica(garbage) as target, backend((target,)) as subject:
        failed = await failure_of(subject)
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.INTERNAL)
