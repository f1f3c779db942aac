"""Segments: what is handed to synthesis, and where it ends."""

from __future__ import annotations

import pytest

from services.edge.text.commitment import CommitmentTextFrontend
from services.edge.text.frontend import Segment, SegmentReason, Span
from services.edge.text.policy import CommitmentPolicy
from services.edge.text.segments import SegmentAssembly, coalesce
from services.edge.text.zh_en_special_v1 import PROFILE

AT_END_OF_INPUT = [
    ("Hello.World. Next", ["Hello.World.", " Next"]),
    ("3 more apples left. ok", ["3 more apples left.", " ok"]),
    ("Mr. Smith left.", ["Mr.", " Smith left."]),
    ("Hello! ! World", ["Hello!", " !", " World"]),
    ("Wait...5 seconds.", ["Wait...", "5 seconds."]),
    ("他说“好。”然后走了。", ["他说“好。", "”然后走了。"]),
    ("Hello. \nWorld", ["Hello.", " \n", "World"]),
    ("共5\nkg", ["共5\n", "kg"]),
    ("共5 \t\n\n再", ["共5 \t\n\n", "再"]),
    ("", []),
    ("   ", ["   "]),
    ("。", ["。"]),
]


def frontend() -> CommitmentTextFrontend:
    """A fresh frontend."""
    return CommitmentTextFrontend(CommitmentPolicy(PROFILE))


@pytest.mark.parametrize(("text", "expected"), AT_END_OF_INPUT)
@pytest.mark.parametrize("packet_size", [1, 2, 1000])
def test_segments_at_end_of_input(text: str, expected: list[str], packet_size: int) -> None:
    """IO-INV-102: a boundary ends the raw segment gathered since the boundary before it."""
    speaking = frontend()
    segments = []
    for start in range(0, len(text), packet_size):
        segments += speaking.feed(text[start : start + packet_size])
    segments += speaking.finish()
    assert [segment.text for segment in segments] == expected
    assert "".join(segment.text for segment in segments) == text


def test_a_segment_is_returned_by_the_call_that_confirms_its_end() -> None:
    """IO-INV-102: the run at the frontier is confirmed by what follows it."""
    speaking = frontend()
    assert speaking.feed("好。") == []
    assert [segment.text for segment in speaking.feed("再")] == ["好。"]
    assert [segment.text for segment in speaking.finish()] == ["再"]


def test_offsets_are_code_points_of_the_utterance() -> None:
    """IO-INV-102: astral characters count once, and segments leave no gap."""
    speaking = frontend()
    segments = speaking.feed("😀好。👩‍🚀再！末") + speaking.finish()
    assert [(s.text, s.source_start, s.source_end) for s in segments] == [
        ("😀好。", 0, 3),
        ("👩‍🚀再！", 3, 8),
        ("末", 8, 9),
    ]


def test_reasons() -> None:
    """IO-INV-103: a boundary is a terminator, the rest ends with the input."""
    speaking = frontend()
    segments = speaking.feed("好。再") + speaking.finish()
    assert [segment.reason for segment in segments] == [
        SegmentReason.TERMINATOR,
        SegmentReason.END_OF_INPUT,
    ]


def test_no_empty_segment_after_a_boundary_at_the_end() -> None:
    """IO-INV-103: what the last boundary ended is not flushed a second time."""
    speaking = frontend()
    assert speaking.feed("好。") == []
    assert speaking.finish() == [
        Segment("好。", 0, 2, SegmentReason.TERMINATOR, (Span("好。", "natural", True),))
    ]


def test_spans_partition_the_segment_whatever_the_packets_were() -> None:
    """IO-INV-102: seams between packets leave no trace in a segment."""
    speaking = frontend()
    segments = []
    for character in "今天卖了12.5元。":
        segments += speaking.feed(character)
    segments += speaking.finish()
    assert [segment.spans for segment in segments] == [
        (
            Span("今天卖了", "natural"),
            Span("12.5元", "special"),
            Span("。", "natural", True),
        )
    ]


def test_coalesce_joins_natural_neighbours_only() -> None:
    """IO-INV-102: atoms stay apart, and a boundary is never joined over."""
    joined = coalesce(
        [
            Span("a", "lexical"),
            Span("b", "lexical"),
            Span("一", "natural"),
            Span("二", "natural"),
            Span("。", "natural", True),
            Span("三", "natural"),
            Span("1", "special"),
        ]
    )
    assert joined == (
        Span("a", "lexical"),
        Span("b", "lexical"),
        Span("一二。", "natural", True),
        Span("三", "natural"),
        Span("1", "special"),
    )


def test_closing_an_empty_segment_gives_nothing() -> None:
    """IO-INV-103: there is no segment without text."""
    assembly = SegmentAssembly()
    assert assembly.close(SegmentReason.END_OF_INPUT) == []
    assert assembly.released_until == 0
