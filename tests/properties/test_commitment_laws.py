"""The laws of text commitment, for any text and any way to cut it into packets."""

from __future__ import annotations

from itertools import accumulate, combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.edge.text.commitment import CommitmentTextFrontend
from services.edge.text.frontend import Segment, SegmentReason, Span
from services.edge.text.policy import CommitmentPolicy, PolicyState
from services.edge.text.segments import coalesce
from services.edge.text.zh_en_special_v1 import PROFILE
from services.edge.text.zh_en_special_v1.held import Held
from services.edge.text.zh_en_special_v1.units import UNITS
from tests.properties.commitment_texts import cut, packets, short_texts, texts
from tests.properties.reference_scanner import ReferencePolicy

law = settings(max_examples=400, deadline=None)


def released_by(cut_text: list[str]) -> tuple[Span, ...]:
    """All spans of a finished utterance, with the seams of packets taken out."""
    policy = CommitmentPolicy(PROFILE)
    spans = [span for packet in cut_text for span in policy.feed(packet).spans]
    return coalesce([*spans, *policy.feed("", final=True).spans])


def segments_of(cut_text: list[str]) -> list[Segment]:
    """All segments of a finished utterance."""
    frontend = CommitmentTextFrontend(CommitmentPolicy(PROFILE))
    segments = [segment for packet in cut_text for segment in frontend.feed(packet)]
    return segments + frontend.finish()


def plain(spans: tuple[Span, ...]) -> list[tuple[str, str, bool]]:
    """Spans as the reference gives them."""
    return [(span.source_text, str(span.kind), span.boundary_after) for span in spans]


@law
@given(packets())
def test_released_and_pending_are_what_was_received(cut_text: list[str]) -> None:
    """IO-INV-102: a lossless partition, always; only a suffix is pending; what was released
    only grows."""
    policy = CommitmentPolicy(PROFILE)
    released = received = ""
    for packet in cut_text:
        received += packet
        update = policy.feed(packet)
        released += "".join(span.source_text for span in update.spans)
        assert released + policy.pending_text == received
        assert all(span.source_text for span in update.spans)


@settings(max_examples=2000, deadline=None)
@given(packets())
def test_every_feed_is_a_replay_from_the_start(cut_text: list[str]) -> None:
    """IO-INV-102: spans, boundaries and pending text after every packet are those of scanning
    the pending text and the packet from SCAN."""
    policy, reference = CommitmentPolicy(PROFILE), ReferencePolicy()
    for packet in cut_text:
        assert plain(policy.feed(packet).spans) == reference.feed(packet)
        assert policy.pending_text == reference.pending
    assert plain(policy.feed("", final=True).spans) == reference.feed("", final=True)


@law
@given(packets(), texts)
def test_the_last_packet_may_bring_text(cut_text: list[str], last: str) -> None:
    """IO-INV-103: text that comes with the end of input is read like any other."""
    policy, reference = CommitmentPolicy(PROFILE), ReferencePolicy()
    for packet in cut_text:
        policy.feed(packet)
        reference.feed(packet)
    assert plain(policy.feed(last, final=True).spans) == reference.feed(last, final=True)


@law
@given(packets())
def test_seams_change_nothing(cut_text: list[str]) -> None:
    """IO-INV-102: text, atoms, boundaries and segments do not depend on packet seams."""
    whole = ["".join(cut_text)]
    assert released_by(cut_text) == released_by(whole)
    assert segments_of(cut_text) == segments_of(whole)


@settings(max_examples=150, deadline=None)
@given(short_texts)
def test_no_two_way_or_three_way_cut_changes_anything(text: str) -> None:
    """IO-INV-102: every single and every double cut, and one character at a time."""
    whole = released_by([text])
    for places in combinations_with_replacement(range(len(text) + 1), 2):
        assert released_by(cut(text, list(places))) == whole, places
    assert released_by(list(text)) == whole


@law
@given(packets())
def test_what_is_pending_depends_on_the_text_alone(cut_text: list[str]) -> None:
    """IO-INV-102: the same text leaves the same suffix pending, however it came."""
    policy = CommitmentPolicy(PROFILE)
    for received, packet in zip(accumulate(cut_text), cut_text, strict=True):
        policy.feed(packet)
        at_once = CommitmentPolicy(PROFILE)
        at_once.feed(received)
        assert policy.pending_text == at_once.pending_text


@law
@given(packets())
def test_finish_releases_everything_exactly_once(cut_text: list[str]) -> None:
    """IO-INV-103: the end of input flushes the rest, and then nothing more is taken."""
    policy = CommitmentPolicy(PROFILE)
    spans = [span for packet in cut_text for span in policy.feed(packet).spans]
    spans += policy.feed("", final=True).spans
    assert "".join(span.source_text for span in spans) == "".join(cut_text)
    assert (policy.pending_text, policy.final) == ("", True)
    with pytest.raises(RuntimeError, match="finished"):
        policy.feed("x")


@law
@given(packets(), st.integers(1, 8))
def test_a_failed_call_changes_nothing(cut_text: list[str], limit: int) -> None:
    """IO-INV-103: an utterance fails at the first packet that leaves too much pending; until
    then it is that of a policy without a limit, and its pending text survives the failure."""
    limited, free = CommitmentPolicy(PROFILE, limit), CommitmentPolicy(PROFILE)
    for packet in cut_text:
        before = limited.pending_text
        update = free.feed(packet)
        if len(update.pending_text) <= limit:
            assert limited.feed(packet).spans == update.spans
            continue
        with pytest.raises(ValueError, match=f"more than {limit} "):
            limited.feed(packet)
        assert (limited.pending_text, limited.state) == (before, PolicyState.FAILED)
        with pytest.raises(RuntimeError, match="failed"):
            limited.feed("x")
        return


@law
@given(packets())
def test_segments_partition_the_utterance(cut_text: list[str]) -> None:
    """IO-INV-102: in source order, without gap or overlap, each ended by its boundary."""
    text, end = "".join(cut_text), 0
    segments = segments_of(cut_text)
    for segment in segments:
        assert segment.source_start == end
        end = segment.source_end
        assert segment.text == text[segment.source_start : end] != ""
        assert segment.text == "".join(span.source_text for span in segment.spans)
        boundaries = [span.boundary_after for span in segment.spans]
        is_terminated = segment.reason is SegmentReason.TERMINATOR
        assert boundaries == [False] * (len(boundaries) - 1) + [is_terminated]
    assert end == len(text)
    assert all(s.reason is SegmentReason.TERMINATOR for s in segments[:-1])


@law
@given(packets())
def test_what_is_read_again_is_bounded(cut_text: list[str]) -> None:
    """IO-INV-102: a feed costs what its packet costs, for it rereads a few characters at most."""
    policy = CommitmentPolicy(PROFILE)
    for packet in cut_text:
        held = policy.feed(packet).held
        if held is not None:
            assert len(getattr(held.memo, "tail", "")) <= max(map(len, UNITS))
            assert held.length == len(held.text()) > 0


HELD_SHAPES = [
    "ab",
    "a.",
    "1",
    "1,2",
    "。!",
    "...",
    "\n",
    "年12月",
    "千瓦时",
    "-—",
    "\ufe0f\u20e3",
    " \t",
]


@pytest.mark.parametrize("shape", HELD_SHAPES)
def test_held_text_is_put_together_only_when_it_is_released(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IO-INV-102: while it is held, pending text is neither read nor copied."""
    calls: list[int] = []
    put_together = Held.text

    def counting(held: Held) -> str:
        calls.append(held.length)
        return put_together(held)

    monkeypatch.setattr(Held, "text", counting)
    policy = CommitmentPolicy(PROFILE)
    head = "" if shape[0] in "a1。.\n-" else "2"
    for character in head + shape * 100:
        assert policy.feed(character).spans == ()
    assert calls == []
    spans = policy.feed("；").spans
    assert sum(len(span.source_text) for span in spans) == len(head + shape * 100 + "；")
    assert len(calls) == 1
