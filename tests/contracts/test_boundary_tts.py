"""The boundary between edge and TTS service: round trips, optional and unknown fields, skew.

Both sides are the real ones: what `services.edge.backends.wire` writes, `services.tts.wire` reads,
and what `services.tts.replies` writes, the edge reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from google.protobuf.message import Message
from hypothesis import given
from weir.media.v1 import audio_pb2, modality_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import SpeechCapabilities
from contracts.errors import Reason, WeirError
from contracts.identity import SegmentIdentity
from contracts.modality import AudioChunk, AudioEncoding, AudioFormat, SpeechUpdate
from contracts.speech import SegmentRequest, SynthesisOptions, VoiceOptions
from services.edge.backends import wire as edge_wire
from services.tts.replies import capabilities_reply, reply
from services.tts.wire import read_request
from tests.contracts import strategies

REQUEST = SegmentRequest(
    SegmentIdentity("s", "r", 0, 0), "Hello.", AudioFormat(AudioEncoding.PCM, 24000)
)
UNKNOWN = b"\xa2\x38\x03new"
"""Field 900, length-delimited: what a newer version might add."""


def sent(request: SegmentRequest) -> tts_pb2.SynthesizeRequest:
    """Return a request as it arrives."""
    written = edge_wire.segment_request(request).SerializeToString()
    return tts_pb2.SynthesizeRequest.FromString(written)


@given(strategies.segment_requests())
def test_a_request_arrives_as_it_was_sent(request: SegmentRequest) -> None:
    """IO-INV-100, IO-INV-102: identity, raw text and every option, present or absent."""
    assert read_request(sent(request)) == request


@given(strategies.identities, strategies.updates)
def test_an_update_arrives_as_it_was_sent(identity: SegmentIdentity, update: SpeechUpdate) -> None:
    """IO-INV-001, IO-INV-100, IO-INV-101: identity, kind and content."""
    written = reply(identity, update).SerializeToString()
    arrived = edge_wire.ResponseReader(identity).read(
        tts_pb2.SynthesizeResponse.FromString(written)
    )
    assert arrived is not None
    assert (arrived.identity, arrived.update) == (identity, update)


@given(strategies.capabilities())
def test_a_declaration_arrives_as_it_was_sent(record: SpeechCapabilities) -> None:
    """WEIR-130: every flag, list and limit."""
    written = capabilities_reply(record).SerializeToString()
    assert edge_wire.capabilities(tts_pb2.GetCapabilitiesResponse.FromString(written)) == record


@pytest.mark.parametrize(
    ("present", "field"),
    [
        (replace(REQUEST, voice=VoiceOptions(instructions="")), "voice.instructions"),
        (replace(REQUEST, voice=VoiceOptions(reference_audio=b"")), "voice.reference_audio"),
        (replace(REQUEST, voice=VoiceOptions(reference_text="")), "voice.reference_text"),
        (replace(REQUEST, voice=VoiceOptions(x_vector_only=False)), "voice.x_vector_only"),
        (replace(REQUEST, options=SynthesisOptions(seed=0)), "options.seed"),
        (
            replace(REQUEST, options=SynthesisOptions(non_streaming_mode=False)),
            "options.non_streaming_mode",
        ),
    ],
)
def test_an_optional_field_tells_absence_from_its_zero_value(
    present: SegmentRequest, field: str
) -> None:
    """WEIR-303: 0, false and empty are values; absent leaves the choice to the model."""
    group, name = field.split(".")
    assert getattr(sent(present), group).HasField(name)
    assert not getattr(sent(REQUEST), group).HasField(name)
    assert read_request(sent(present)) == present
    assert read_request(sent(present)) != REQUEST


def _top(request: tts_pb2.SynthesizeRequest) -> Message:
    return request


def _identity(request: tts_pb2.SynthesizeRequest) -> Message:
    return request.identity


def _text(request: tts_pb2.SynthesizeRequest) -> Message:
    return request.text


def _output(request: tts_pb2.SynthesizeRequest) -> Message:
    return request.output


def _voice(request: tts_pb2.SynthesizeRequest) -> Message:
    return request.voice


def _options(request: tts_pb2.SynthesizeRequest) -> Message:
    return request.options


@pytest.mark.parametrize("place", [_top, _identity, _text, _output, _voice, _options])
def test_a_request_with_an_unknown_field_is_refused(
    place: Callable[[tts_pb2.SynthesizeRequest], Message],
) -> None:
    """WEIR-301: an older service must not drop an option of a newer edge in silence."""
    message = sent(REQUEST)
    place(message).MergeFromString(UNKNOWN)
    with pytest.raises(WeirError) as caught:
        read_request(message)
    assert caught.value.failure.reason is Reason.INVALID_MESSAGE
    assert caught.value.failure.violations


def _unspecified_encoding(request: tts_pb2.SynthesizeRequest) -> None:
    request.output.encoding = audio_pb2.AUDIO_ENCODING_UNSPECIFIED


def _unknown_encoding(request: tts_pb2.SynthesizeRequest) -> None:
    request.output.encoding = 99  # type: ignore[assignment]  # of a newer version


def _unspecified_modality(request: tts_pb2.SynthesizeRequest) -> None:
    request.text.modality = modality_pb2.MODALITY_UNSPECIFIED


def _other_modality(request: tts_pb2.SynthesizeRequest) -> None:
    request.text.modality = modality_pb2.MODALITY_AUDIO


def _unknown_task(request: tts_pb2.SynthesizeRequest) -> None:
    request.voice.task_type = 99  # type: ignore[assignment]  # of a newer version


def _no_identity(request: tts_pb2.SynthesizeRequest) -> None:
    request.ClearField("identity")


def _no_attempt(request: tts_pb2.SynthesizeRequest) -> None:
    request.identity.attempt = 0


def _no_text(request: tts_pb2.SynthesizeRequest) -> None:
    request.ClearField("text")


def _no_output(request: tts_pb2.SynthesizeRequest) -> None:
    request.ClearField("output")


@pytest.mark.parametrize(
    "spoil",
    [
        _unspecified_encoding,
        _unknown_encoding,
        _unspecified_modality,
        _other_modality,
        _unknown_task,
        _no_identity,
        _no_attempt,
        _no_text,
        _no_output,
    ],
)
def test_a_request_that_does_not_say_what_it_must_is_refused(
    spoil: Callable[[tts_pb2.SynthesizeRequest], None],
) -> None:
    """IO-INV-001, IO-INV-100, WEIR-301: unset, unspecified and unknown are no defaults."""
    message = sent(REQUEST)
    spoil(message)
    with pytest.raises(WeirError) as caught:
        read_request(message)
    assert caught.value.failure.reason is Reason.INVALID_MESSAGE


@given(strategies.identities, strategies.updates)
def test_unknown_fields_of_a_newer_service_are_ignored(
    identity: SegmentIdentity, update: SpeechUpdate
) -> None:
    """WEIR-302: in the response, in its identity and in the update itself."""
    message = reply(identity, update)
    kind = message.WhichOneof("update")
    assert kind is not None
    message.identity.MergeFromString(UNKNOWN)
    getattr(message, kind).MergeFromString(UNKNOWN)
    message.MergeFromString(UNKNOWN)
    arrived = edge_wire.ResponseReader(identity).read(message)
    assert arrived is not None
    assert (arrived.identity, arrived.update) == (identity, update)


def test_an_unknown_update_of_a_newer_service_is_ignored() -> None:
    """WEIR-302: it reads as a response without an update."""
    message = reply(REQUEST.identity, AudioChunk(0, b"ab"))
    message.ClearField("audio_chunk")
    message.MergeFromString(UNKNOWN)
    assert edge_wire.ResponseReader(REQUEST.identity).read(message) is None


@given(strategies.capabilities())
def test_unknown_capabilities_of_a_newer_service_are_ignored(record: SpeechCapabilities) -> None:
    """WEIR-302: a flag, an option and a task that this edge has no name for."""
    message = capabilities_reply(record)
    message.capabilities.options.append("mood")
    message.capabilities.task_types.append(99)  # type: ignore[arg-type]  # of a newer version
    message.capabilities.MergeFromString(UNKNOWN)
    for voice in message.capabilities.voices:
        voice.MergeFromString(UNKNOWN)
    assert edge_wire.capabilities(message) == record
