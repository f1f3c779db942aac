"""The laws of buffered mode: pieces do not depend on packets, and come as soon as they may."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.edge.text.buffered import BufferedTextFrontend
from services.edge.text.frontend import Segment
from services.edge.text.splitter import IncrementalSplitter, SplitGranularity, split
from tests.properties.reference_splitter import split_whole

TEXTS = st.lists(
    st.sampled_from(
        [*"ab1２٣ .,;!?。，；،।…\"'”)「 \n\u3000好😀", '."', ".' ", '," ', "3.5", "1,0"]
    ),
    max_size=30,
).map("".join)
GRANULARITIES = st.sampled_from(SplitGranularity)
EXHAUSTIVE = [
    'He said "no." Then',
    '一。"二"。\' 三',
    "1,000, 2.5. \n ！」 x",
    '" . "a." "b',
    '."\'." ."',
]


def in_packets(text: str, sizes: list[int]) -> list[str]:
    """Cut a text into packets of these sizes, the last one as long as it takes."""
    packets: list[str] = []
    for size in sizes:
        packets.append(text[:size])
        text = text[size:]
    return [*packets, text]


def pieces_of(packets: list[str], granularity: str) -> list[str]:
    splitter = IncrementalSplitter(granularity)
    pieces = [piece for packet in packets for piece in splitter.feed(packet)]
    return pieces + splitter.finish()


@settings(max_examples=1500, deadline=None)
@given(TEXTS, GRANULARITIES, st.lists(st.integers(0, 4), max_size=20))
def test_pieces_do_not_depend_on_packets(text: str, granularity: str, sizes: list[int]) -> None:
    """IO-INV-102: any packets give what the plain reading of the whole text gives."""
    expected = split_whole(text, granularity)
    assert pieces_of(in_packets(text, sizes), granularity) == expected
    assert pieces_of(list(text), granularity) == expected
    assert split(text, granularity) == expected


@pytest.mark.parametrize("granularity", SplitGranularity)
@pytest.mark.parametrize("text", EXHAUSTIVE)
def test_no_cut_into_two_or_three_packets_matters(text: str, granularity: str) -> None:
    """IO-INV-102: every seam, and every pair of seams."""
    expected = split_whole(text, granularity)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            packets = [text[:first], text[first:second], text[second:]]
            assert pieces_of(packets, granularity) == expected, packets


@settings(max_examples=500, deadline=None)
@given(TEXTS, TEXTS, GRANULARITIES)
def test_what_was_given_out_stands_whatever_follows(text: str, more: str, granularity: str) -> None:
    """IO-INV-102: pieces are irreversible."""
    given_out = IncrementalSplitter(granularity).feed(text)
    assert split_whole(text + more, granularity)[: len(given_out)] == given_out


@settings(max_examples=500, deadline=None)
@given(TEXTS, GRANULARITIES)
def test_a_piece_comes_as_soon_as_it_may(text: str, granularity: str) -> None:
    """IO-INV-102: with the character behind it, a quote needing one more."""
    pieces = split_whole(text, granularity)
    for count in range(1, len(pieces)):
        seen = text[: len("".join(pieces[:count])) + 2]
        assert IncrementalSplitter(granularity).feed(seen)[:count] == pieces[:count]


@settings(max_examples=300, deadline=None)
@given(TEXTS, GRANULARITIES, st.lists(st.integers(0, 4), max_size=20))
def test_segments_partition_the_text(text: str, granularity: str, sizes: list[int]) -> None:
    """IO-INV-102: offsets and texts agree, without gap or overlap."""
    frontend = BufferedTextFrontend(granularity)
    segments = [s for packet in in_packets(text, sizes) for s in frontend.feed(packet)]
    segments += frontend.finish()
    until = 0
    for segment in segments:
        assert segment.source_start == until
        assert segment.text == text[until : segment.source_end]
        assert segment.text
        until = segment.source_end
    assert until == len(text)
    assert all(segment.text.strip() for segment in segments[:-1])


def seconds_per_character(unit: str, length: int) -> float:
    """Processor time, whoever else is running: the best of three runs, one character a call."""
    text = (unit * length)[:length]
    best = float("inf")
    for _ in range(3):
        frontend = BufferedTextFrontend("clause")
        begin = time.thread_time()
        released: list[Segment] = []
        for character in text:
            released += frontend.feed(character)
        released += frontend.finish()
        best = min(best, time.thread_time() - begin)
        assert sum(len(segment.text) for segment in released) == length
    return best / length


@pytest.mark.parametrize("unit", ["a", "!", '!"', " ", "a. ", '"', "1,", "。 "])
def test_the_cost_of_a_character_does_not_grow(unit: str) -> None:
    """IO-INV-102: an open sentence, a run of marks and white space are read once.

    A cost that grew with what is held would be forty times as large at the longer length.
    """
    assert seconds_per_character(unit, 40_000) < 4 * seconds_per_character(unit, 1_000)
