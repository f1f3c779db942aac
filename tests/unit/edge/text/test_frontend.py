"""The frontend protocols, and the built-in frontend as one of their implementations."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from services.edge.text.commitment import CommitmentTextFrontend, create_zh_en_special_v1
from services.edge.text.frontend import (
    Committable,
    Explainable,
    Explanation,
    Segment,
    SegmentReason,
    Span,
    SpanKind,
    StableReleasable,
    StreamingTextFrontend,
)
from services.edge.text.policy import CommitmentPolicy
from services.edge.text.zh_en_special_v1 import PROFILE
from services.edge.text.zh_en_special_v1.held import RESOLUTIONS, HoldRule


def frontend(limit: int = 4096) -> CommitmentTextFrontend:
    """A fresh frontend."""
    return CommitmentTextFrontend(CommitmentPolicy(PROFILE, limit))


def test_a_frontend_has_two_methods_and_no_more() -> None:
    """IO-INV-102: whoever brings a frontend implements `feed` and `finish`."""
    methods = {name for name in vars(StreamingTextFrontend) if not name.startswith("_")}
    assert methods == {"feed", "finish"}


def test_the_names_on_the_wire() -> None:
    """IO-INV-102: kinds and reasons are published under these names."""
    assert [str(kind) for kind in SpanKind] == ["natural", "lexical", "special"]
    assert [str(reason) for reason in SegmentReason] == [
        "terminator",
        "end_of_input",
        "commit",
        "soft",
    ]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (Segment("x", 0, 1, SegmentReason.COMMIT), "text"),
        (Span("x", SpanKind.NATURAL), "source_text"),
        (Explanation((), "", None, None), "pending"),
    ],
)
def test_records_are_immutable(record: Any, field: str) -> None:
    """IO-INV-102: what was released is never revised."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, field, "y")
    assert not hasattr(record, "__dict__")


def test_the_first_profile_explains_but_does_not_commit() -> None:
    """IO-INV-102: v1 promises nothing beyond its rules, so it cannot be told to let go."""
    speaking = frontend()
    assert isinstance(speaking, Explainable)
    assert not isinstance(speaking, Committable)
    assert not isinstance(speaking, StableReleasable)


def test_a_failed_call_publishes_no_segment() -> None:
    """IO-INV-102: a ValueError fails the utterance without any output of that call."""
    speaking = frontend(limit=3)
    speaking.feed("好12")
    with pytest.raises(ValueError, match="more than 3"):
        speaking.feed("。再。1234")
    assert (speaking.pending, speaking.released_until) == ("12", 1)
    with pytest.raises(RuntimeError, match="failed"):
        speaking.finish()
    with pytest.raises(RuntimeError, match="failed"):
        speaking.feed("x")


def test_the_end_of_input_comes_once() -> None:
    """IO-INV-103: text after the end is refused, and so is a second end."""
    speaking = frontend()
    assert [segment.text for segment in speaking.feed("好") + speaking.finish()] == ["好"]
    with pytest.raises(RuntimeError, match="finished"):
        speaking.feed("x")
    with pytest.raises(RuntimeError, match="finished"):
        speaking.finish()


def test_a_non_string_leaves_the_utterance_open() -> None:
    """IO-INV-102: the caller's mistake changes nothing."""
    speaking = frontend()
    wrong: Any = b"x"
    with pytest.raises(TypeError):
        speaking.feed(wrong)
    assert [segment.text for segment in speaking.feed("好") + speaking.finish()] == ["好"]


def test_a_factory_gives_fresh_state() -> None:
    """IO-INV-102: one object serves one utterance, whatever its language."""
    one = create_zh_en_special_v1(language="Chinese", max_pending_characters=10)
    other = create_zh_en_special_v1(language="English", max_pending_characters=10)
    assert one.feed("12") == []
    assert [segment.text for segment in other.finish()] == []
    with pytest.raises(ValueError, match="positive"):
        create_zh_en_special_v1(language="Chinese", max_pending_characters=0)


EXPLAINED = [
    ("好", "", None),
    ("好。", "。", HoldRule.TERMINATOR_RUN),
    ("好.", ".", HoldRule.TERMINATOR_RUN),
    ("好．", "．", HoldRule.DECIMAL_POINT),
    ("好ab", "ab", HoldRule.OPEN_WORD),
    ("好ab-", "ab-", HoldRule.CONNECTOR),
    ("好U.S.", "U.S.", HoldRule.OPEN_WORD),
    ("好12", "12", HoldRule.OPEN_SPECIAL),
    ("好12,", "12,", HoldRule.PUNCTUATION),
    ("好12  ", "12  ", HoldRule.SPACE_AFTER_NUMBER),
    ("好12平", "12平", HoldRule.UNIT_PREFIX),
    ("好12  平方", "12  平方", HoldRule.UNIT_PREFIX),
    ("好12 kg", "12 kg", HoldRule.OPEN_SPECIAL),
    ("好12千瓦", "12千瓦", HoldRule.OPEN_SPECIAL),
    ("好1\ufe0f", "1\ufe0f", HoldRule.KEYCAP),
    ("好1\ufe0f\u20e3", "1\ufe0f\u20e3", HoldRule.OPEN_SPECIAL),
]


@pytest.mark.parametrize(("text", "pending", "rule"), EXPLAINED)
@pytest.mark.parametrize("packet_size", [1, 100])
def test_an_explanation_names_the_rule_that_holds(
    text: str, pending: str, rule: HoldRule | None, packet_size: int
) -> None:
    """IO-INV-102: what is pending is pending by a rule of the profile."""
    speaking = frontend()
    for start in range(0, len(text), packet_size):
        speaking.feed(text[start : start + packet_size])
    explained = speaking.explain()
    assert (explained.pending, explained.rule) == (pending, rule)
    assert explained.resolved_by == (RESOLUTIONS[rule] if rule else None)
    assert speaking.pending == pending
    assert speaking.released_until == len(text) - len(pending)


def test_an_explanation_shows_what_the_last_call_released() -> None:
    """IO-INV-102: spans are those of the last call, not of the utterance."""
    speaking = frontend()
    speaking.feed("好12")
    assert speaking.explain().spans == (Span("好", "natural"),)
    speaking.feed("中")
    assert speaking.explain().spans == (Span("12", "special"), Span("中", "natural"))
    speaking.finish()
    assert speaking.explain() == Explanation((), "", None, None)


def test_every_rule_says_what_resolves_it() -> None:
    """IO-INV-102: nothing is held without a way out."""
    assert set(RESOLUTIONS) == set(HoldRule)
