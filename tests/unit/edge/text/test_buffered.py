"""The frontends of buffered mode."""

from __future__ import annotations

import pytest

from services.edge.text.buffered import BufferedTextFrontend
from services.edge.text.frontend import Committable, Segment, SegmentReason, StableReleasable
from services.edge.text.splitter import SplitGranularity

TERMINATOR, END = SegmentReason.TERMINATOR, SegmentReason.END_OF_INPUT

RELEASES = [
    ("white space makes a sentence certain", "sentence", "One.| |T|wo", ["", "One.", "", ""]),
    ("also within a packet", "sentence", "One. Two. T|hree", ["One.;Two.", ""]),
    ("a run may go on", "sentence", "Wait.|.|. x", ["", "", "Wait..."]),
    ("a closing quote may follow", "sentence", "“No.|”| x", ["", "", "“No.”"]),
    ("a straight quote is known by what follows", "sentence", "。|'|a", ["", "", "。"]),
    ("a decimal is no end", "sentence", "3.|5 m.| x", ["", "", "3.5 m."]),
    ("marks of other scripts need no white space", "sentence", "好。|再", ["", "好。"]),
    ("a grouped number is no end", "clause", "1,|000, |x", ["", "1,000,", ""]),
    ("a clause mark ends it alone", "clause", "a,| b|, c", ["", "a,", "b,"]),
    ("a whole utterance waits", "none", "One. |Two. |Three", ["", "", ""]),
]


@pytest.mark.parametrize(("granularity", "packets", "released"), [row[1:] for row in RELEASES])
def test_what_each_packet_releases(granularity: str, packets: str, released: list[str]) -> None:
    """IO-INV-102: a piece comes when no further text can move its end, and not before."""
    frontend = BufferedTextFrontend(granularity)
    texts = [[s.text.strip() for s in frontend.feed(packet)] for packet in packets.split("|")]
    assert [";".join(pieces) for pieces in texts] == released
    assert len(frontend.finish()) == 1


def test_offsets_and_reasons() -> None:
    """IO-INV-102: code points from the start of the utterance; the rest ends with the input."""
    frontend = BufferedTextFrontend("sentence")
    assert frontend.feed("😀! Tw") == [Segment("😀!", 0, 2, TERMINATOR)]
    assert frontend.feed("o.  ") == [Segment(" Two.", 2, 7, TERMINATOR)]
    assert frontend.finish() == [Segment("  ", 7, 9, END)]


def test_a_whole_utterance_is_one_segment() -> None:
    """IO-INV-103: granularity none gives nothing before the end of input."""
    frontend = BufferedTextFrontend("none")
    assert frontend.feed("One. ") == frontend.feed("") == frontend.feed("Two. ") == []
    assert frontend.finish() == [Segment("One. Two. ", 0, 10, END)]


@pytest.mark.parametrize("granularity", SplitGranularity)
@pytest.mark.parametrize(("text", "count"), [("", 0), (" \n", 1)])
def test_nothing_and_white_space(granularity: str, text: str, count: int) -> None:
    """IO-INV-102: nothing gives nothing; white space is kept, for the session to pass over."""
    frontend = BufferedTextFrontend(granularity)
    assert frontend.feed(text) == []
    assert frontend.finish() == [Segment(text, 0, len(text), END)] * count


@pytest.mark.parametrize("granularity", SplitGranularity)
def test_one_object_serves_one_utterance(granularity: str) -> None:
    """IO-INV-103: the input ends once, and text after it is refused."""
    frontend = BufferedTextFrontend(granularity)
    frontend.feed("One.")
    frontend.finish()
    with pytest.raises(RuntimeError, match="finished"):
        frontend.feed("Two.")
    with pytest.raises(RuntimeError, match="finished"):
        frontend.finish()


def test_what_is_no_string_changes_nothing() -> None:
    """IO-INV-102: a failed call leaves the state as it was."""
    frontend = BufferedTextFrontend("sentence")
    frontend.feed("One")
    with pytest.raises(TypeError, match="bytes"):
        frontend.feed(b". Two")  # type: ignore[arg-type]  # this is the misuse
    assert frontend.finish() == [Segment("One", 0, 3, END)]


def test_an_unknown_granularity_is_refused() -> None:
    """IO-INV-102: nothing stands in for a granularity that is not there."""
    with pytest.raises(ValueError, match="word"):
        BufferedTextFrontend("word")


def test_buffered_text_cannot_be_committed() -> None:
    """IO-INV-102: the optional powers of commitment frontends are not claimed."""
    frontend = BufferedTextFrontend("sentence")
    assert not isinstance(frontend, Committable | StableReleasable)
