"""What a replica declares: complete, consistent, and merged to what all of them share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.capabilities import (
    AUTO,
    SpeechCapabilities,
    TaskType,
    TextCommitmentCapabilities,
    Voice,
    canonical_language,
    shared_by_all,
)
from tests.contracts import strategies

COMMITMENT = TextCommitmentCapabilities("p", ("English",), True, False, True, False, False)
RECORD = SpeechCapabilities(
    model="m",
    sample_rate_hz=24000,
    languages=("English", "Chinese"),
    voices=(Voice("Ada", ("English",)), Voice("Bo", ("Chinese",))),
    default_voice="Ada",
    max_text_characters=100,
    text_commitment=(COMMITMENT,),
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""},
        {"sample_rate_hz": 0},
        {"max_text_characters": 0},
        {"languages": ()},
        {"voices": ()},
        {"voices": (Voice("Ada", ()), Voice("Ada", ()))},
        {"default_voice": "nobody"},
        {"task_types": (TaskType.BASE,)},
        {"options": frozenset({"mood"})},
    ],
)
def test_a_record_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    """WEIR-130: before anybody can rely on it."""
    with pytest.raises(ValueError, match="model"):
        replace(RECORD, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"profile": ""},
        {"languages": ()},
        {"independent_segments": False},
        {"context_preservation": True},
    ],
)
def test_a_commitment_record_is_for_independent_segments_or_for_kept_context(
    wrong: dict[str, Any],
) -> None:
    """WEIR-130: a stateful adapter cannot look like one for independent requests."""
    with pytest.raises(ValueError, match="commitment"):
        replace(COMMITMENT, **wrong)
    kept = replace(COMMITMENT, independent_segments=False, context_preservation=True)
    assert kept.context_preservation


def test_voices_are_found_without_regard_to_case() -> None:
    """WEIR-130: names are distinct, so there is at most one."""
    assert RECORD.voice("ADA") == RECORD.voices[0]
    assert RECORD.voice("zoe") is None


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("English", "English"),
        (" english ", "English"),
        ("en", "English"),
        ("ZH", "Chinese"),
        ("auto", AUTO),
        ("German", None),
        ("de", None),
        ("", None),
    ],
)
def test_a_language_is_known_by_name_or_code_when_it_is_spoken(
    name: str, canonical: str | None
) -> None:
    """WEIR-130: one canonical name inside."""
    assert RECORD.language(name) == canonical
    assert canonical_language(name, RECORD.languages) == canonical


def test_the_first_commitment_record_for_profile_and_language_counts() -> None:
    """WEIR-130: the most preferred is declared first."""
    second = replace(COMMITMENT, languages=("English", "Chinese"), audio_streaming=False)
    record = replace(RECORD, text_commitment=(COMMITMENT, second))
    assert record.commitment("p", "English") == COMMITMENT
    assert record.commitment("p", "Chinese") == second
    assert record.commitment("p", "German") is None
    assert record.commitment("q", "English") is None


@given(st.lists(strategies.capabilities(), max_size=4))
def test_what_is_offered_is_declared_by_every_replica(records: list[SpeechCapabilities]) -> None:
    """WEIR-131: each part of the merged record holds for each of the records."""
    merged = shared_by_all(records)
    if not records:
        assert merged is None
    if merged is None:
        return
    for record in records:
        assert set(merged.languages) <= set(record.languages)
        assert {v.name for v in merged.voices} <= {v.name for v in record.voices}
        assert set(merged.task_types) <= set(record.task_types)
        assert merged.options <= record.options
        assert set(merged.text_commitment) <= set(record.text_commitment)
        assert merged.max_text_characters <= record.max_text_characters
        assert record.word_times or not merged.word_times
        assert record.audio_streaming or not merged.audio_streaming


@given(strategies.capabilities())
def test_equal_replicas_offer_what_one_of_them_declares(record: SpeechCapabilities) -> None:
    """WEIR-131: merging loses nothing without a reason."""
    assert shared_by_all([record] * 3) == record


@pytest.mark.parametrize(
    "other",
    [
        replace(RECORD, languages=("German",)),
        replace(RECORD, voices=(Voice("Cy", ("English",)),), default_voice="Cy"),
    ],
)
def test_replicas_without_a_voice_or_language_in_common_offer_nothing(
    other: SpeechCapabilities,
) -> None:
    """WEIR-131: in either order, and whatever comes after."""
    assert shared_by_all([RECORD, other]) is None
    assert shared_by_all([other, RECORD]) is None
    assert shared_by_all([RECORD, other, RECORD]) is None


def test_the_default_voice_is_one_that_all_have() -> None:
    """WEIR-131: when the first one's default is not shared, another takes its place."""
    other = replace(RECORD, voices=(Voice("Bo", ("Chinese",)),), default_voice="Bo")
    merged = shared_by_all([RECORD, other])
    assert merged is not None
    assert merged.default_voice == "Bo"
