"""Text in, segments out: order, white space, limits, the ready queue."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.identity import SegmentIdentity
from services.edge.speech.events import StartSegment
from services.edge.speech.terms import SpeechLimits
from services.edge.speech.utterance import Utterance
from services.edge.text.buffered import BufferedTextFrontend
from tests.unit.edge.speech.session_fixture import (
    COMMITTED,
    STREAMED,
    Conversation,
    codes,
    kinds,
    messages,
)


def spoken(talk: Conversation) -> list[str]:
    """Play every segment that is started; return their texts."""
    texts: list[str] = []
    while len(talk.requests) > len(texts):
        texts.append(talk.request.text)
        talk.speak(b"\0\0")
    return texts


@pytest.mark.parametrize(
    ("fields", "packets", "texts"),
    [
        ({}, ["One. ", "Two."], ["One. Two."]),
        (STREAMED, ["One. T", "wo. "], ["One.", " Two."]),
        ({**STREAMED, "split_granularity": "clause"}, ["a, b. c"], ["a,", " b.", " c"]),
        (COMMITTED, ["Hello.Wor", "ld. Next"], ["Hello.World.", " Next"]),
        (COMMITTED, ["Hello! ! World"], ["Hello!", " !", " World"]),
        (COMMITTED, ["Hello. \nWorld"], ["Hello.", "World"]),
    ],
)
def test_text_is_raw_and_in_source_order(
    fields: dict[str, Any], packets: list[str], texts: list[str]
) -> None:
    """IO-INV-102: leading white space is kept, punctuation alone is spoken, white space is not."""
    talk = Conversation(config=fields)
    for packet in packets:
        talk.text(packet)
    talk.done()
    assert spoken(talk) == texts
    assert messages(talk.everything, "session.done")[-1]["total_sentences"] == len(texts)


def test_commitment_speaks_before_the_end_of_input() -> None:
    """IO-INV-102: what can no longer change is submitted at once, the rest is held."""
    talk = Conversation(config=COMMITTED)
    assert talk.text("It is 2") == []
    assert talk.text("5.") == []
    assert kinds(talk.text(" Then")) == ["start s.0.0"]
    assert talk.request.text == "It is 25."


def test_a_sentence_starts_before_the_end_of_input() -> None:
    """IO-INV-102: buffered sentences go as soon as their end is certain, whatever the packets."""
    talk = Conversation(config=STREAMED)
    assert talk.text("One.") == []
    assert kinds(talk.text(" ")) == ["start s.0.0"]


def test_a_whole_utterance_waits_for_its_end() -> None:
    """IO-INV-103: granularity none is one request, at the end of input."""
    talk = Conversation(config={})
    assert talk.text("One. Two. Three. ") == []
    assert kinds(talk.done()) == ["start s.0.0"]


def test_the_identity_of_a_segment() -> None:
    """IO-INV-100: the request id names session, utterance and segment, and offsets are exact."""
    talk = Conversation(config=COMMITTED)
    talk.done()
    talk.text("好。 \nB. x")
    talk.done()
    assert talk.request.identity == SegmentIdentity("s", "s.1.0", 1, 0)
    first = talk.speak()
    assert talk.request.identity == SegmentIdentity("s", "s.1.2", 1, 2)
    second = talk.speak()
    starts = messages(first, "audio.start") + messages(second, "audio.start")
    fields = ("utterance_index", "segment_index", "sentence_index", "source_start", "source_end")
    assert [tuple(start[name] for name in fields) for start in starts] == [
        (1, 0, 0, 0, 2),
        (1, 2, 1, 4, 6),
    ]
    assert [start["sentence_text"] for start in starts] == ["好。", "B."]
    assert [start["request_id"] for start in starts] == ["s.1.0", "s.1.2"]


def test_spans_reach_the_backend() -> None:
    """IO-INV-102: the kinds of a committed segment go along, and concatenated are its text."""
    talk = Conversation(config=COMMITTED)
    talk.text("It costs $5. x")
    assert "".join(span.text for span in talk.request.spans) == "It costs $5."
    assert ("$5", "special") in [(span.text, span.kind) for span in talk.request.spans]


@pytest.mark.parametrize("text", [None, "", " ", "\n\u3000 \t"])
@pytest.mark.parametrize("fields", [{}, STREAMED, COMMITTED], ids=["whole", "split", "commitment"])
def test_nothing_to_say(fields: dict[str, Any], text: str | None) -> None:
    """IO-INV-103: session.done with 0, no synthesis, and the index is consumed."""
    talk = Conversation(config=fields)
    if text is not None:
        assert talk.text(text) == []
    assert talk.done() == [{"type": "session.done", "utterance_index": 0, "total_sentences": 0}]
    assert talk.requests == []
    talk.text("Hi.")
    talk.done()
    assert talk.request.identity.utterance_index == 1


def test_empty_text_changes_nothing_anywhere() -> None:
    """IO-INV-103: it opens nothing, and is no text after the end of input either."""
    talk = Conversation(config=STREAMED)
    assert talk.text("") == []
    talk.text("Hi. x")
    assert talk.text("") == []
    talk.done()
    assert talk.text("") == []


@pytest.mark.parametrize("name", ["input.text", "input.done"])
def test_nothing_between_the_end_and_session_done(name: str) -> None:
    """IO-INV-103: text and a second end are refused, and the utterance goes on unharmed."""
    talk = Conversation(config=STREAMED)
    talk.text("Hi.")
    talk.done()
    for _ in range(2):
        assert codes(talk.send(name, text="more")) == ["session_state"]
    assert messages(talk.speak(), "session.done")[0]["total_sentences"] == 1
    assert talk.text("Next. x") != []


def test_utterances_follow_one_another() -> None:
    """IO-INV-101: one session.done each, counted from 0, with the number of audio.start."""
    talk = Conversation(config=STREAMED)
    for index, text in enumerate(["One. Two.", " ", "Three."]):
        talk.text(text)
        talk.done()
        while talk.session.speaking:
            talk.speak(b"\0\0")
        starts = [
            m for m in messages(talk.everything, "audio.start") if m["utterance_index"] == index
        ]
        ends = messages(talk.everything, "session.done")
        assert ends[-1] == {
            "type": "session.done",
            "utterance_index": index,
            "total_sentences": len(starts),
        }
        assert [start["sentence_index"] for start in starts] == list(range(len(starts)))
        assert len(ends) == index + 1


def test_one_segment_is_in_flight_at_a_time() -> None:
    """IO-INV-102: the next one starts after the last has settled, in order."""
    talk = Conversation(config=STREAMED)
    assert kinds(talk.text("1. 2. 3. 4. ")) == ["start s.0.0"]
    talk.done()
    talk.accept()
    talk.complete()
    assert kinds(talk.outcome()) == ["audio.done", "start s.0.1"]
    assert kinds(talk.speak()) == ["audio.start", "audio.done", "start s.0.2"]
    assert kinds(talk.speak()) == ["audio.start", "audio.done", "start s.0.3"]
    assert kinds(talk.speak()) == ["audio.start", "audio.done", "session.done"]


def test_many_segments_wait_in_order() -> None:
    """IO-INV-102: more than the queue holds: nothing is dropped, merged or reordered."""
    talk = Conversation(config=STREAMED)
    sentences = [f"{number}." for number in range(100)]
    talk.text(" ".join(sentences))
    talk.done()
    assert [text.strip() for text in spoken(talk)] == sentences


def test_the_ready_queue_is_bounded() -> None:
    """IO-INV-102: at most eight are ready; the rest stays staged and moves up one by one."""
    utterance = Utterance(0, BufferedTextFrontend("sentence"), SpeechLimits())
    utterance.feed("。".join(str(number) for number in range(21)))
    lengths = []
    taken = []
    while (segment := utterance.take()) is not None:
        lengths.append(len(utterance._ready))
        taken.append(segment[0])
    assert taken == list(range(20))
    assert lengths == [8] * 12 + [7, 6, 5, 4, 3, 2, 1, 0]
    assert not utterance.has_work


@pytest.mark.parametrize("fields", [{}, STREAMED], ids=["whole", "split"])
def test_the_limit_of_an_utterance_is_allowed(fields: dict[str, Any]) -> None:
    """IO-INV-103: 131,072 characters are spoken, whatever the packets; one more fails it."""
    talk = Conversation(config=fields)
    for _ in range(4):
        assert talk.text("好" * 32_768) == []
    shown = talk.text("好")
    assert (kinds(shown), codes(shown)) == (["error"], ["utterance_too_long"])
    assert messages(shown, "error")[0]["utterance_index"] == 0
    assert talk.done() == [{"type": "session.done", "utterance_index": 0, "total_sentences": 0}]
    for _ in range(4):
        assert talk.text("好" * 32_768) == []
    assert kinds(talk.done()) == ["start s.1.0"]
    assert len(talk.request.text) == 131_072


def test_one_message_may_be_too_long_by_itself() -> None:
    """IO-INV-103: the first text of an utterance is held against the limit, too."""
    talk = Conversation(config=STREAMED, limits=SpeechLimits(utterance_characters=5))
    assert codes(talk.text("123456")) == ["utterance_too_long"]
    assert codes(talk.text("1")) == ["utterance_failed"]
    assert kinds(talk.done()) == ["session.done"]
    assert talk.text("12345") == []


def test_the_limit_of_pending_text_is_allowed() -> None:
    """IO-INV-102: 4,096 code points may be pending; one more fails the utterance."""
    talk = Conversation(config=COMMITTED)
    assert talk.text("a" * 4096) == []
    shown = talk.text("b")
    assert codes(shown) == ["pending_text_limit"]
    assert messages(shown, "error")[0]["utterance_index"] == 0
    assert kinds(talk.done()) == ["session.done"]
    assert talk.requests == []


def test_a_long_packet_that_resolves_is_fine() -> None:
    """IO-INV-102: the limit is on what stays pending, not on the packet."""
    talk = Conversation(config=COMMITTED)
    assert kinds(talk.text("a" * 5000 + ". x")) == ["start s.0.0"]


def test_buffered_text_is_not_pending_text() -> None:
    """IO-INV-102: the pending limit belongs to commitment mode."""
    talk = Conversation(config={})
    assert talk.text("a" * 50_000) == []
    assert kinds(talk.done()) == ["start s.0.0"]


@pytest.mark.parametrize(
    ("limits", "fields", "too_much", "code"),
    [
        (
            SpeechLimits(utterance_characters=20),
            STREAMED,
            "3. 4. 5. 6. 7. 8. ",
            "utterance_too_long",
        ),
        (SpeechLimits(pending_characters=4), COMMITTED, " 3. 4. aaaaa", "pending_text_limit"),
    ],
)
def test_failed_text_submits_nothing_and_delivers_what_is_in_flight(
    limits: SpeechLimits, fields: dict[str, Any], too_much: str, code: str
) -> None:
    """IO-INV-103: nothing of that call, nothing staged; the segment in flight ends well."""
    talk = Conversation(config=fields, limits=limits)
    assert kinds(talk.text("1. 2. x")) == ["start s.0.0"]
    talk.accept()
    assert codes(talk.text(too_much)) == [code]
    assert kinds(talk.chunk(b"\0\0")) == ["audio"]
    talk.complete()
    assert kinds(talk.outcome()) == ["audio.done"]
    assert not messages(talk.everything, "audio.done")[0]["error"]
    assert codes(talk.text("more")) == ["utterance_failed"]
    assert kinds(talk.done()) == ["session.done"]
    assert len(talk.requests) == 1


@pytest.mark.parametrize(
    ("fields", "retry"), [(COMMITTED, True), (STREAMED, False)], ids=["commitment", "buffered"]
)
def test_whether_a_segment_may_be_tried_again_goes_along(
    fields: dict[str, Any], retry: bool
) -> None:
    """IO-INV-102: what the adapter declared for committed segments, and never more."""
    talk = Conversation(config=fields)
    started = talk.text("Hi. x")[0]
    assert isinstance(started, StartSegment)
    assert started.retry_after_acceptance is retry
