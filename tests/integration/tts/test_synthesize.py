"""Whole calls over a real connection, with the tone adapter."""

from __future__ import annotations

import io
from dataclasses import replace

import grpc.aio
import numpy as np
import pytest
import soundfile
from weir.tts.v1 import tts_pb2

from contracts.accumulation import SegmentStream
from contracts.capabilities import SpeechCapabilities
from contracts.errors import Failure, GrpcCode, Reason
from contracts.modality import AudioEncoding, TextSpan
from contracts.speech import SegmentRequest, SynthesisOptions, VoiceOptions
from services.edge.backends.wire import ResponseReader, capabilities, segment_request
from services.runtime.errors import failure_of_rpc_error
from services.tts.adapters.settings import AdapterSettings
from services.tts.adapters.tone import ToneAdapter, ToneSettings
from tests.integration.tts.serving import (
    Replica,
    audio_of,
    outcome_of,
    serving,
    speaking,
    updates_of,
)
from tests.unit.tts.support import sample_of, segment, wire_request

TEXT = "Some words, 12.5%."
SPOKEN_S = len(TEXT) * 0.06


def _tone(**options: float | str | bool) -> ToneAdapter:
    return ToneAdapter(AdapterSettings(), ToneSettings(**options))  # type: ignore[arg-type]  # names by the test


async def _failure_of_capabilities(
    replica: Replica, request: tts_pb2.GetCapabilitiesRequest
) -> Failure:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await replica.stub.GetCapabilities(request)
    return failure_of_rpc_error(raised.value)


async def _speak(replica: Replica, request: SegmentRequest) -> list[tts_pb2.SynthesizeResponse]:
    """Speak `request`; everything that comes is read and checked as the edge does it."""
    async with speaking(replica.stub, segment_request(request)) as call:
        responses = await updates_of(call)
    reader, stream = ResponseReader(request.identity), SegmentStream(request)
    for response in responses:
        update = reader.read(response)
        assert update is not None
        stream.receive(update)
    stream.end()
    return responses


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("encoding", list(AudioEncoding))
async def test_a_segment_is_spoken_in_every_encoding(encoding: AudioEncoding, words: bool) -> None:
    """IO-INV-100, IO-INV-101: both ends agree on identity, order, terminals and counts."""
    request = segment(encoding, text=TEXT, word_times=words)
    async with serving(_tone()) as replica:
        responses = await _speak(replica, request)
    rate = responses[0].accepted.format.sample_rate_hz
    assert rate == {AudioEncoding.MULAW: 8000, AudioEncoding.OPUS: 48000}.get(encoding, 24000)
    terminal = next(r.audio_completed for r in responses if r.HasField("audio_completed"))
    assert abs(terminal.total_samples - SPOKEN_S * rate) <= 1
    if not encoding.raw:
        decoded, decoded_rate = soundfile.read(io.BytesIO(audio_of(responses)))
        assert (len(decoded), decoded_rate) == (terminal.total_samples, rate)
    heard = [word.word for r in responses for word in r.word_times.words]
    assert heard == (["Some", "words", "12.5%"] if words else [])
    assert responses[-1].outcome.usage.input_characters == len(TEXT)
    assert responses[-1].outcome.usage.output_audio_ms == pytest.approx(1000 * SPOKEN_S, abs=1)


async def test_the_file_and_the_stream_are_the_same_samples() -> None:
    """WEIR-184: what a client hears does not depend on how it asked for it."""
    async with serving(_tone()) as replica:
        raw = audio_of(await _speak(replica, segment(AudioEncoding.PCM, text=TEXT)))
        flac = audio_of(await _speak(replica, segment(AudioEncoding.FLAC, text=TEXT)))
    decoded, _ = soundfile.read(io.BytesIO(flac), dtype="int16")
    np.testing.assert_array_equal(np.frombuffer(raw, "<i2"), decoded)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("speed", [0.25, 4.0])
async def test_speed_is_the_models_or_stretching_and_words_follow(
    speed: float, native: bool
) -> None:
    """WEIR-186, WEIR-189: the same duration and the same words either way."""
    request = segment(text="ab cd", speed=speed, word_times=True)
    async with serving(_tone(native_speed=native)) as replica:
        responses = await _speak(replica, request)
    audio_ms = responses[-1].outcome.usage.output_audio_ms
    assert audio_ms == pytest.approx(300 / speed, abs=1)
    spans = [(w.start_ms, w.end_ms) for r in responses for w in r.word_times.words]
    expected = [(0, 120 / speed), (180 / speed, 300 / speed)]
    assert [pytest.approx(span, abs=2) for span in expected] == spans


@pytest.mark.parametrize("encoding", list(AudioEncoding))
async def test_text_without_sound_is_a_success(encoding: AudioEncoding) -> None:
    """IO-INV-101: only a file encoding has bytes then; every terminal still comes."""
    request = segment(encoding, text=" !", word_times=True)
    async with serving(_tone()) as replica:
        responses = await _speak(replica, request)
    assert bool(audio_of(responses)) != encoding.raw
    assert responses[-2].word_times_completed.aligned
    assert responses[-1].outcome.usage.output_audio_ms <= 20


async def test_everything_a_request_says_reaches_the_model() -> None:
    """WEIR-183: spans, seed and voice arrive over the wire; another seed is another sound."""
    request = replace(
        segment(text="ab 12"),
        spans=(TextSpan("ab ", "natural"), TextSpan("12", "special")),
        voice=VoiceOptions(voice="high", language="English"),
        options=SynthesisOptions(seed=1),
    )
    async with serving(_tone()) as replica:
        one = audio_of(await _speak(replica, request))
        same = audio_of(await _speak(replica, request))
        other_seed = replace(request, options=SynthesisOptions(seed=2))
        other = audio_of(await _speak(replica, other_seed))
        low = replace(request, voice=VoiceOptions(voice="tone"))
        lower = audio_of(await _speak(replica, low))
    assert one == same
    assert len({one, other, lower}) == 3


async def test_the_capabilities_arrive_as_the_adapter_declares_them() -> None:
    """WEIR-130: the edge reads what the adapter said, under the name the operator gave."""
    adapter = _tone()
    async with serving(adapter, MODEL_NAME="beeper", MAX_TEXT_CHARACTERS="77") as replica:
        answer = await replica.stub.GetCapabilities(tts_pb2.GetCapabilitiesRequest())
        declared: SpeechCapabilities = adapter.capabilities
        assert capabilities(answer) == replace(declared, model="beeper", max_text_characters=77)


async def test_a_refused_request_has_had_no_effect_and_says_what_is_wrong() -> None:
    """WEIR-110, WEIR-200: status details name every field; nothing was accepted before."""
    request = wire_request()
    request.identity.attempt = 0
    request.output.ClearField("encoding")
    async with serving(_tone()) as replica:
        async with speaking(replica.stub, request) as call:
            kinds, failed = await outcome_of(call)
        assert replica.busy == 0
        assert sample_of(replica.metrics, "refusals_total", reason="INVALID_MESSAGE") == 1
    assert kinds == []
    assert failed is not None
    assert (failed.reason, failed.code) == (Reason.INVALID_MESSAGE, GrpcCode.INVALID_ARGUMENT)
    paths = [violation.field for violation in failed.violations]
    assert paths == ["identity.attempt", "output.encoding"]


@pytest.mark.parametrize("method", ["Synthesize", "GetCapabilities"])
async def test_a_request_with_an_unknown_field_is_refused(method: str) -> None:
    """WEIR-301: a newer edge is told that this replica does not know what it asks for."""
    unknown = bytes([0xF8, 0x3F, 0x01])  # field 1023, a varint
    async with serving(_tone()) as replica:
        if method == "Synthesize":
            async with speaking(replica.stub, wire_request()) as call:
                assert (await outcome_of(call))[1] is None
            request = tts_pb2.SynthesizeRequest.FromString(
                wire_request().SerializeToString() + unknown
            )
            async with speaking(replica.stub, request) as call:
                _, failed = await outcome_of(call)
        else:
            message = tts_pb2.GetCapabilitiesRequest.FromString(unknown)
            failed = await _failure_of_capabilities(replica, message)
    assert failed is not None
    assert failed.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (replace(segment(), voice=VoiceOptions(voice="nobody")), Reason.UNSUPPORTED_OPTION),
        (replace(segment(), voice=VoiceOptions(language="Klingon")), Reason.UNSUPPORTED_OPTION),
        (replace(segment(), voice=VoiceOptions(instructions="calm")), Reason.UNSUPPORTED_OPTION),
        (segment(text="x" * 21), Reason.MESSAGE_TOO_LARGE),
    ],
)
async def test_what_the_model_does_not_offer_is_refused(
    request_: SegmentRequest, reason: Reason
) -> None:
    """WEIR-183: the reason travels in the details, with the code the registry gives it."""
    async with (
        serving(_tone(max_text_characters=20)) as replica,
        speaking(replica.stub, segment_request(request_)) as call,
    ):
        kinds, failed = await outcome_of(call)
    assert kinds == []
    assert failed is not None
    assert (failed.reason, failed.code) == (reason, GrpcCode.INVALID_ARGUMENT)


@pytest.mark.parametrize(("after", "chunks"), [(0, 0), (2, 6)])
async def test_a_model_that_fails_sends_no_outcome(after: int, chunks: int) -> None:
    """IO-INV-101: what was spoken has arrived, then SEGMENT_FAILED; the next segment is clean."""
    request = segment(text="x" * 20)
    adapter = _tone(fail_after_steps=after, fail_times=1)
    async with serving(adapter, QUEUE_REQUESTS="0", SLOTS="1") as replica:
        async with speaking(replica.stub, segment_request(request)) as call:
            kinds, failed = await outcome_of(call)
        assert kinds == ["accepted", *["audio_chunk"] * chunks]
        assert failed is not None
        assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.INTERNAL)
        assert sample_of(replica.metrics, "failures_total", reason="SEGMENT_FAILED") == 1
        await _speak(replica, request)
        assert sample_of(replica.metrics, "completions_total") == 1


async def test_a_long_text_is_read_without_holding_up_the_loop_and_spoken_whole() -> None:
    """WEIR-110: the largest segment that is allowed arrives code point by code point."""
    text = "水" * 131_072
    adapter = _tone(character_ms=0.05, step_ms=60_000)
    request = segment(AudioEncoding.PCM, rate_hz=8000, text=text)
    async with serving(adapter) as replica:
        responses = await _speak(replica, request)
    assert responses[-1].outcome.usage.input_characters == len(text)
