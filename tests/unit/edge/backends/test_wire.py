"""Reading responses: what is tolerated and what is refused. Writing is tested at the boundary."""

from __future__ import annotations

from dataclasses import replace

import pytest
from weir.media.v1 import modality_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import SpeechCapabilities, TaskType, Voice
from contracts.identity import SegmentIdentity
from contracts.modality import AudioChunk, WordTime, WordTimes
from services.edge.backends import wire
from services.tts.replies import capabilities_reply, reply

IDENTITY = SegmentIdentity("s", "r", 2, 3, 4)
CAPABILITIES = SpeechCapabilities(
    model="m",
    sample_rate_hz=24000,
    languages=("English",),
    voices=(Voice("ada", ("English",)),),
    default_voice="ada",
    max_text_characters=10,
)


def test_an_answer_to_us_is_recognised_and_another_is_told_apart() -> None:
    """IO-INV-100: by every part of the identity."""
    reader = wire.ResponseReader(IDENTITY)
    mine = reader.read(reply(IDENTITY, AudioChunk(0, b"a")))
    assert mine is not None
    assert mine.identity is IDENTITY
    for other in (
        replace(IDENTITY, session_id="t"),
        replace(IDENTITY, request_id="q"),
        replace(IDENTITY, utterance_index=0),
        replace(IDENTITY, segment_index=0),
        replace(IDENTITY, attempt=1),
    ):
        foreign = reader.read(reply(other, AudioChunk(0, b"a")))
        assert foreign is not None
        assert foreign.identity == other


@pytest.mark.parametrize("field", ["session_id", "request_id"])
def test_an_identity_that_is_none_is_refused(field: str) -> None:
    """WEIR-100: ids from the wire are checked like any other."""
    response = reply(IDENTITY, AudioChunk(0, b"a"))
    setattr(response.identity, field, "two words")
    with pytest.raises(wire.WireError, match=field):
        wire.ResponseReader(IDENTITY).read(response)


def test_word_times_that_run_backwards_are_refused() -> None:
    """WEIR-110: a word does not end before it starts."""
    response = reply(IDENTITY, WordTimes((WordTime("a", 1, 2),)))
    response.word_times.words[0].end_ms = 0
    with pytest.raises(wire.WireError, match="word_times"):
        wire.ResponseReader(IDENTITY).read(response)


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("audio_chunk", modality_pb2.MODALITY_WORD_TIMES),
        ("audio_completed", modality_pb2.MODALITY_UNSPECIFIED),
        ("word_times", modality_pb2.MODALITY_AUDIO),
        ("word_times_completed", modality_pb2.MODALITY_TEXT),
    ],
)
def test_a_payload_that_names_another_modality_is_refused(
    message: str, wrong: modality_pb2.Modality.ValueType
) -> None:
    """IO-INV-001: nothing is guessed from the field that is filled."""
    response = tts_pb2.SynthesizeResponse(identity=reply(IDENTITY, AudioChunk(0, b"a")).identity)
    getattr(response, message).modality = wrong
    if message == "audio_chunk":
        response.audio_chunk.data = b"a"
    with pytest.raises(wire.WireError, match="modality"):
        wire.ResponseReader(IDENTITY).read(response)


def test_an_encoding_that_the_edge_does_not_know_is_refused() -> None:
    """WEIR-302: ignoring what a newer service adds ends where bytes could not be read."""
    response = tts_pb2.SynthesizeResponse(identity=reply(IDENTITY, AudioChunk(0, b"a")).identity)
    response.accepted.format.encoding = 99  # type: ignore[assignment]  # of a newer version
    with pytest.raises(wire.WireError, match="encoding"):
        wire.ResponseReader(IDENTITY).read(response)


def test_tasks_and_options_of_a_newer_service_are_left_out() -> None:
    """WEIR-302: the edge has no way to ask for them."""
    response = capabilities_reply(replace(CAPABILITIES, options=frozenset({"instructions"})))
    response.capabilities.options.append("mood")
    response.capabilities.task_types.append(99)  # type: ignore[arg-type]  # of a newer version
    assert wire.capabilities(response) == replace(
        CAPABILITIES, options=frozenset({"instructions"}), task_types=(TaskType.CUSTOM_VOICE,)
    )


@pytest.mark.parametrize("missing", ["model", "sample_rate_hz", "languages", "voices"])
def test_a_declaration_that_lacks_what_it_must_have_is_refused(missing: str) -> None:
    """WEIR-130: an incomplete record never reaches a client."""
    response = capabilities_reply(CAPABILITIES)
    response.capabilities.ClearField(missing)  # type: ignore[arg-type]  # one of its fields
    with pytest.raises(wire.WireError, match="capabilities"):
        wire.capabilities(response)


def test_an_answer_without_a_declaration_is_refused() -> None:
    """WEIR-130: nothing declared is not the same as everything declared empty."""
    with pytest.raises(wire.WireError):
        wire.capabilities(tts_pb2.GetCapabilitiesResponse())
