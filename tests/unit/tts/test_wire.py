"""Requests off the wire: what is read, and what is refused with which path."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from weir.media.v1 import audio_pb2, modality_pb2, text_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import TaskType
from contracts.errors import GrpcCode, Reason, WeirError
from contracts.modality import AudioEncoding, AudioFormat, TextSpan
from contracts.speech import SynthesisOptions, VoiceOptions
from services.tts.wire import ENCODINGS, read_request
from tests.unit.tts.support import IDENTITY, wire_request

Change = Callable[[tts_pb2.SynthesizeRequest], object]


def _refusal(message: tts_pb2.SynthesizeRequest) -> WeirError:
    with pytest.raises(WeirError) as raised:
        read_request(message)
    return raised.value


def test_a_request_is_read_whole() -> None:
    """WEIR-110: every field of the wire arrives in the validated request."""
    message = wire_request("  Hi 42")
    message.text.spans.extend(
        [text_pb2.TextSpan(text="  Hi ", kind="natural"), text_pb2.TextSpan(text="42", kind="new")]
    )
    message.output.encoding = audio_pb2.AUDIO_ENCODING_FLAC
    message.output.sample_rate_hz = 16000
    message.voice.voice = "anna"
    message.voice.language = "English"
    message.voice.task_type = tts_pb2.TASK_TYPE_BASE
    message.voice.instructions = "calm"
    message.voice.reference_audio = b"RIFF"
    message.voice.reference_text = ""
    message.voice.x_vector_only = False
    message.voice.speaker_embedding.extend([0.5, -1.0])
    message.options.speed = 4.0
    message.options.seed = -1
    message.options.word_times = True
    message.options.max_new_tokens = 7
    message.options.initial_codec_chunk_frames = 1
    message.options.non_streaming_mode = True

    request = read_request(message)

    assert request.identity == IDENTITY
    assert request.text == "  Hi 42"
    assert request.spans == (TextSpan("  Hi ", "natural"), TextSpan("42", "new"))
    assert request.output == AudioFormat(AudioEncoding.FLAC, 16000)
    assert request.voice == VoiceOptions(
        voice="anna",
        language="English",
        task_type=TaskType.BASE,
        instructions="calm",
        reference_audio=b"RIFF",
        reference_text="",
        x_vector_only=False,
        speaker_embedding=(0.5, -1.0),
    )
    assert request.options == SynthesisOptions(
        speed=4.0,
        seed=-1,
        word_times=True,
        max_new_tokens=7,
        initial_codec_chunk_frames=1,
        non_streaming_mode=True,
    )


def test_absent_options_mean_the_models_defaults() -> None:
    """WEIR-110: absence is not a value; it reads as the default of the contract."""
    request = read_request(wire_request())
    assert request.voice == VoiceOptions()
    assert request.options == SynthesisOptions()


def test_every_encoding_of_the_wire_is_known() -> None:
    """WEIR-110: the table names every encoding but the unspecified one, and each only once."""
    numbers = set(audio_pb2.AudioEncoding.values()) - {audio_pb2.AUDIO_ENCODING_UNSPECIFIED}
    assert set(ENCODINGS) == numbers
    assert sorted(ENCODINGS.values()) == sorted(AudioEncoding)


def _spans(*texts: str) -> Change:
    return lambda m: m.text.spans.extend(text_pb2.TextSpan(text=text, kind="k") for text in texts)


INVALID: list[tuple[str, Change]] = [
    ("identity", lambda m: m.ClearField("identity")),
    ("identity.session_id", lambda m: setattr(m.identity, "session_id", "a b")),
    ("identity.session_id", lambda m: setattr(m.identity, "session_id", "")),
    ("identity.request_id", lambda m: setattr(m.identity, "request_id", "x" * 129)),
    ("identity.attempt", lambda m: setattr(m.identity, "attempt", 0)),
    ("text", lambda m: m.ClearField("text")),
    ("text.text", lambda m: m.text.ClearField("text")),
    ("text.modality", lambda m: m.text.ClearField("modality")),
    ("text.modality", lambda m: setattr(m.text, "modality", modality_pb2.MODALITY_AUDIO)),
    ("text.spans", _spans("some ", "word")),
    ("text.spans[1].text", _spans("some words", "")),
    ("output", lambda m: m.ClearField("output")),
    ("output.encoding", lambda m: m.output.ClearField("encoding")),
    ("output.encoding", lambda m: setattr(m.output, "encoding", 99)),
    ("voice.task_type", lambda m: setattr(m.voice, "task_type", 99)),
    ("voice.speaker_embedding", lambda m: m.voice.speaker_embedding.extend([0.0] * 8193)),
    ("voice.speaker_embedding", lambda m: m.voice.speaker_embedding.extend([math.nan])),
    ("options.speed", lambda m: setattr(m.options, "speed", 0.2)),
    ("options.speed", lambda m: setattr(m.options, "speed", 4.01)),
    ("options.speed", lambda m: setattr(m.options, "speed", math.nan)),
    ("options.speed", lambda m: setattr(m.options, "speed", 0.0)),
    ("options.max_new_tokens", lambda m: setattr(m.options, "max_new_tokens", 0)),
    (
        "options.initial_codec_chunk_frames",
        lambda m: setattr(m.options, "initial_codec_chunk_frames", 0),
    ),
]


@pytest.mark.parametrize(("path", "change"), INVALID)
def test_an_invalid_field_is_named_by_its_path(path: str, change: Change) -> None:
    """WEIR-110: INVALID_MESSAGE carries the dotted path of the one field that is wrong."""
    message = wire_request()
    change(message)
    failed = _refusal(message).failure
    assert failed.reason is Reason.INVALID_MESSAGE
    assert failed.code is GrpcCode.INVALID_ARGUMENT
    assert [violation.field for violation in failed.violations] == [path]


def test_all_invalid_fields_are_named_at_once() -> None:
    """WEIR-110: one answer names everything that is wrong, so that one correction is enough."""
    message = wire_request()
    message.identity.attempt = 0
    message.output.ClearField("encoding")
    message.options.speed = 9
    paths = [violation.field for violation in _refusal(message).failure.violations]
    assert paths == ["identity.attempt", "output.encoding", "options.speed"]


UNSUPPORTED: list[tuple[str, Change]] = [
    ("output.sample_rate_hz", lambda m: setattr(m.output, "sample_rate_hz", 12345)),
    ("output.channels", lambda m: setattr(m.output, "channels", 2)),
    (
        "output.sample_rate_hz",
        lambda m: m.output.MergeFrom(
            audio_pb2.AudioFormat(encoding=audio_pb2.AUDIO_ENCODING_OPUS, sample_rate_hz=24000)
        ),
    ),
]


@pytest.mark.parametrize(("path", "change"), UNSUPPORTED)
def test_a_rate_or_channel_count_that_nobody_offers_is_unsupported(
    path: str, change: Change
) -> None:
    """WEIR-110: a well-formed wish that no replica fulfils is UNSUPPORTED_OPTION."""
    message = wire_request()
    change(message)
    failed = _refusal(message).failure
    assert failed.reason is Reason.UNSUPPORTED_OPTION
    assert failed.code is GrpcCode.INVALID_ARGUMENT
    assert [violation.field for violation in failed.violations] == [path]


@pytest.mark.parametrize("channels", [0, 1])
@pytest.mark.parametrize("rate", [0, 8000, 16000, 22050, 24000, 44100, 48000])
def test_every_documented_rate_is_read(rate: int, channels: int) -> None:
    """WEIR-110: the rates of the contract are accepted, 0 meaning that the replica chooses."""
    message = wire_request()
    message.output.sample_rate_hz = rate
    message.output.channels = channels
    assert read_request(message).output == AudioFormat(AudioEncoding.PCM, rate)


@pytest.mark.parametrize("place", ["", "options", "text"])
def test_an_unknown_field_at_any_depth_is_refused(place: str) -> None:
    """WEIR-301: an option that this build does not know is never dropped in silence."""
    message = wire_request()
    target = getattr(message, place) if place else message
    target.MergeFromString(bytes([0xF8, 0x3F, 0x01]))  # field 1023, a varint
    assert _refusal(message).failure.reason is Reason.INVALID_MESSAGE


def test_a_refusal_never_repeats_what_was_sent() -> None:
    """WEIR-201: neither text nor ids nor values of a request stand in the failure."""
    message = wire_request("the secret text")
    message.identity.session_id = "secret session"
    message.voice.instructions = "secret wish"
    message.text.spans.append(text_pb2.TextSpan(text="secret span", kind="secret"))
    assert "secret" not in repr(_refusal(message).failure)
