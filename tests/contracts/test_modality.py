"""Modalities by name, and the payloads of each: what is valid, and that partial is not terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from weir.media.v1 import modality_pb2

from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    Modality,
    Outcome,
    SpeechUpdate,
    WordTime,
    WordTimes,
    WordTimesCompleted,
    parse_modality,
)


@pytest.mark.parametrize(
    ("name", "modality"),
    [
        ("text", Modality.TEXT),
        ("txt", Modality.TEXT),
        ("audio", Modality.AUDIO),
        ("speech", Modality.AUDIO),
        ("sound", Modality.AUDIO),
        ("video", Modality.VIDEO),
        ("media", Modality.VIDEO),
        ("word_times", Modality.WORD_TIMES),
        ("words", Modality.WORD_TIMES),
        ("word_timestamps", Modality.WORD_TIMES),
        (" AUDIO\t", Modality.AUDIO),
        ("Words", Modality.WORD_TIMES),
    ],
)
def test_a_modality_is_known_by_its_name_and_its_aliases(name: str, modality: Modality) -> None:
    """IO-INV-001: without regard to case or surrounding space."""
    assert parse_modality(name) is modality


@pytest.mark.parametrize("name", ["", " ", "image", "audio,text", "audi", "audio\0", "1"])
def test_an_unknown_modality_is_refused(name: str) -> None:
    """IO-INV-001: nothing is guessed."""
    with pytest.raises(ValueError, match="unknown modality"):
        parse_modality(name)


def test_every_modality_has_a_number_on_the_wire_and_the_wire_has_no_other() -> None:
    """IO-INV-001: the two lists are one; 0 is not a modality."""
    names: list[str] = modality_pb2.Modality.keys()
    on_the_wire = {name.removeprefix("MODALITY_").lower() for name in names}
    assert on_the_wire == {modality.value for modality in Modality} | {"unspecified"}
    assert modality_pb2.MODALITY_UNSPECIFIED == 0


def test_partial_updates_terminals_and_the_outcome_are_types_of_their_own() -> None:
    """IO-INV-101: no flag decides whether an update is the last one."""
    assert set(get_args(SpeechUpdate)) == {
        Accepted,
        AudioChunk,
        AudioCompleted,
        WordTimes,
        WordTimesCompleted,
        Outcome,
    }


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: AudioChunk(-1, b"a"), id="a chunk before the first"),
        pytest.param(lambda: AudioChunk(0, b""), id="a chunk without a byte"),
        pytest.param(lambda: WordTime("a", -1, 0), id="a word before the first sample"),
        pytest.param(lambda: WordTime("a", 2, 1), id="a word that ends before it starts"),
        pytest.param(lambda: AudioFormat(AudioEncoding.PCM, -1), id="a negative rate"),
        pytest.param(lambda: AudioFormat(AudioEncoding.PCM, 8000, 2), id="two channels"),
        pytest.param(lambda: AudioFormat(AudioEncoding.PCM, 8000, 0), id="no channel"),
    ],
)
def test_a_payload_that_contradicts_itself_is_refused(make: Callable[[], object]) -> None:
    """WEIR-110: at construction, so no invalid payload exists."""
    with pytest.raises(ValueError, match=r" (has|starts) "):
        make()


def test_the_least_payloads_are_accepted() -> None:
    """WEIR-110: the other side of each limit."""
    assert AudioChunk(0, b"a").data == b"a"
    assert WordTime("a", 0, 0).end_ms == 0
    assert AudioFormat(AudioEncoding.PCM, 0).channels == 1


@pytest.mark.parametrize("encoding", list(AudioEncoding))
def test_exactly_the_raw_encodings_have_a_size_for_each_sample(encoding: AudioEncoding) -> None:
    """WEIR-110: a file is no sequence of samples."""
    sizes = {AudioEncoding.PCM: 2, AudioEncoding.MULAW: 1}
    assert encoding.bytes_per_sample == sizes.get(encoding)
    assert encoding.raw is (encoding in sizes)
