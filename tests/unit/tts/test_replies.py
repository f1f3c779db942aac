"""Answers onto the wire."""

from __future__ import annotations

import dataclasses

import pytest
from weir.media.v1 import modality_pb2

from contracts.capabilities import SpeechCapabilities, TaskType, TextCommitmentCapabilities
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    Outcome,
    SpeechUpdate,
    Usage,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from services.tts.replies import capabilities_reply, reply
from tests.unit.tts.support import CAPABILITIES, IDENTITY

AUDIO, WORDS = modality_pb2.MODALITY_AUDIO, modality_pb2.MODALITY_WORD_TIMES
UPDATES: list[tuple[str, int | None, SpeechUpdate]] = [
    ("accepted", None, Accepted(AudioFormat(AudioEncoding.MULAW, 8000), 4)),
    ("audio_chunk", AUDIO, AudioChunk(5, b"ab")),
    ("audio_completed", AUDIO, AudioCompleted(6, 12, 6)),
    ("word_times", WORDS, WordTimes((WordTime("a", 0, 10), WordTime("b", 10, 25)))),
    ("word_times_completed", WORDS, WordTimesCompleted(2, True)),
    ("outcome", None, Outcome(Usage(1, 2, 3, 4))),
]


@pytest.mark.parametrize(("field", "modality", "update"), UPDATES)
def test_every_update_is_its_own_message_with_the_identity_and_modality(
    field: str, modality: int | None, update: SpeechUpdate
) -> None:
    """IO-INV-100, IO-INV-101, IO-INV-001: identity unchanged, one message a kind, modality told."""
    message = reply(IDENTITY, update)
    assert message.WhichOneof("update") == field
    for name in ("session_id", "request_id", "utterance_index", "segment_index", "attempt"):
        assert getattr(message.identity, name) == getattr(IDENTITY, name)
    payload = getattr(message, field)
    if modality is not None:
        assert payload.modality == modality
    scalars = {f.name for f in dataclasses.fields(update)} & set(payload.DESCRIPTOR.fields_by_name)
    for name in scalars - {"format", "words", "usage"}:
        assert getattr(payload, name) == getattr(update, name), name


def test_format_words_and_usage_travel_whole() -> None:
    """IO-INV-101: what is nested in an update arrives field by field."""
    accepted = reply(IDENTITY, UPDATES[0][2]).accepted
    assert (accepted.format.encoding, accepted.format.sample_rate_hz, accepted.format.channels) == (
        6,
        8000,
        1,
    )
    words = reply(IDENTITY, UPDATES[3][2]).word_times.words
    assert [(w.word, w.start_ms, w.end_ms) for w in words] == [("a", 0, 10), ("b", 10, 25)]
    usage = reply(IDENTITY, UPDATES[5][2]).outcome.usage
    assert [value for _, value in usage.ListFields()] == [1, 2, 3, 4]


def test_capabilities_travel_whole() -> None:
    """WEIR-130: a declared record arrives as it was declared."""
    commitment = TextCommitmentCapabilities("p", ("English",), True, False, True, False, True)
    record: SpeechCapabilities = dataclasses.replace(
        CAPABILITIES,
        task_types=(TaskType.CUSTOM_VOICE, TaskType.BASE),
        options=frozenset({"instructions", "reference_audio"}),
        text_commitment=(commitment,),
    )
    wire = capabilities_reply(record).capabilities
    for name in (
        "model",
        "sample_rate_hz",
        "default_voice",
        "word_times",
        "audio_streaming",
        "max_text_characters",
    ):
        assert getattr(wire, name) == getattr(record, name), name
    assert tuple(wire.languages) == record.languages
    assert [(v.name, tuple(v.languages)) for v in wire.voices] == [
        ("anna", ("English",)),
        ("bo", ("Chinese", "English")),
    ]
    assert list(wire.task_types) == [1, 3]
    assert list(wire.options) == ["instructions", "reference_audio"]
    (sent,) = wire.text_commitment
    for field in dataclasses.fields(commitment):
        value = getattr(commitment, field.name)
        got = getattr(sent, field.name)
        assert (tuple(got) if field.name == "languages" else got) == value, field.name
