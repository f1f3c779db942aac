"""Barge-in, close and disconnect: what is dropped, and what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import Reason, failure
from contracts.modality import Accepted, AudioChunk, AudioEncoding, AudioFormat, Outcome
from services.edge.speech.events import AbortSegment, Close, SegmentFailed, SegmentUpdated
from services.edge.speech.transitions import State
from tests.unit.edge.speech.session_fixture import (
    COMMITTED,
    STREAMED,
    USAGE,
    Conversation,
    codes,
    kinds,
    messages,
)

NO = failure(Reason.INTERNAL, "No.")
NOTHING = {"type": "input.cancelled", "utterance_index": None, "submitted_until": 0, "sent_ms": 0}


def test_with_nothing_open_a_cancel_is_answered_and_consumes_no_index() -> None:
    """WEIR-151: before any text, after an utterance, as often as it comes."""
    talk = Conversation(config=STREAMED)
    assert talk.cancel() == [NOTHING]
    assert talk.cancel(played_ms=3) == [NOTHING]
    talk.text("One.")
    talk.done()
    assert talk.request.identity.utterance_index == 0
    talk.speak(b"\0\0")
    assert talk.cancel() == [NOTHING]
    talk.text("Two.")
    talk.done()
    assert talk.request.identity.utterance_index == 1


@pytest.mark.parametrize(
    ("fields", "text"), [({}, "One. Two."), (COMMITTED, "One"), (STREAMED, "One.")]
)
def test_unsubmitted_text_is_dropped(fields: dict[str, Any], text: str) -> None:
    """WEIR-151: buffered or pending text is gone, nothing is aborted, the index is consumed."""
    talk = Conversation(config=fields)
    talk.text(text)
    assert talk.cancel() == [{**NOTHING, "utterance_index": 0}]
    talk.text("Next.")
    talk.done()
    assert (talk.request.text, talk.request.identity.utterance_index) == ("Next.", 1)


@pytest.mark.parametrize("fields", [STREAMED, COMMITTED], ids=["buffered", "commitment"])
@pytest.mark.parametrize("ended", [False, True], ids=["receiving", "finishing"])
@pytest.mark.parametrize("chunks", [None, 0, 3], ids=["waiting", "accepted", "streaming"])
def test_a_cancel_drops_the_utterance(
    fields: dict[str, Any], ended: bool, chunks: int | None
) -> None:
    """WEIR-151: the request is aborted once, the answer is the last word, no session.done."""
    talk = Conversation(config=fields)
    talk.text("One. Two. Three. x")
    if ended:
        talk.done()
    if chunks is not None:
        talk.accept()
    for _ in range(chunks or 0):
        talk.chunk(bytes(2 * 240))
    assert talk.cancel() == [
        AbortSegment("s.0.0"),
        {
            "type": "input.cancelled",
            "utterance_index": 0,
            "submitted_until": 4,
            "sent_ms": 10 * (chunks or 0),
        },
    ]
    assert talk.session.state is State.READY
    assert codes(talk.everything) == []
    assert messages(talk.everything, "session.done") == []


def test_what_comes_late_of_a_cancelled_utterance_is_dropped() -> None:
    """WEIR-151: updates and failures, also while the next utterance is being spoken."""
    talk = Conversation(config=STREAMED)
    talk.text("One. Two. x")
    talk.accept()
    talk.cancel()
    late: list[SegmentUpdated | SegmentFailed] = [
        SegmentUpdated("s.0.0", AudioChunk(0, b"\0\0")),
        SegmentUpdated("s.0.0", Outcome(USAGE)),
        SegmentUpdated("s.0.0", Accepted(AudioFormat(AudioEncoding.PCM, 24000))),
        SegmentFailed("s.0.0", NO),
    ]
    assert [talk.receive(event) for event in late] == [[]] * 4
    talk.text("Next. x")
    assert [talk.receive(event) for event in late] == [[]] * 4
    talk.done()
    assert [talk.receive(event) for event in late] == [[]] * 4
    assert kinds(talk.speak(b"\0\0")) == ["audio.start", "audio", "audio.done", "start s.1.1"]
    assert {m["utterance_index"] for m in messages(talk.everything, "audio.done")} == {1}


def test_the_next_text_is_a_new_utterance_at_once() -> None:
    """WEIR-151: the cancel takes effect where it is read; nothing is waited for."""
    talk = Conversation(config=STREAMED)
    talk.text("One. x")
    talk.cancel()
    assert kinds(talk.text("Two. x")) == ["start s.1.0"]
    assert (talk.request.text, talk.request.identity.segment_index) == ("Two.", 0)


def test_a_configuration_may_follow_a_cancel() -> None:
    """WEIR-151: no utterance is open then."""
    talk = Conversation(config=STREAMED)
    talk.text("One. x")
    talk.cancel()
    assert talk.configure() == []


@pytest.mark.parametrize("ended", [False, True])
def test_a_failed_utterance_can_be_cancelled(ended: bool) -> None:
    """WEIR-151: with and without a segment in flight; text is taken again."""
    talk = Conversation(config=COMMITTED)
    talk.text("One. x")
    talk.text("x" * 5000)
    if ended:
        assert talk.done() == []
    assert kinds(talk.cancel()) == ["abort s.0.0", "input.cancelled"]
    talk.text("Two. x")
    talk.fail(NO)
    assert kinds(talk.cancel()) == ["input.cancelled"]
    assert kinds(talk.text("Three. x")) == ["start s.2.0"]


def test_a_cancel_counts_all_that_was_submitted_and_sent() -> None:
    """WEIR-151: over all segments of the utterance, skipped white space left out at the end."""
    talk = Conversation(config=COMMITTED)
    talk.text("One. \nTwo. x")
    talk.speak(bytes(2 * 2400), bytes(2 * 1200))
    talk.accept()
    talk.chunk(bytes(2 * 2400))
    answer = messages(talk.cancel(), "input.cancelled")[0]
    assert (answer["submitted_until"], answer["sent_ms"]) == (10, 250)


def test_the_milliseconds_of_many_chunks_do_not_drift() -> None:
    """WEIR-151: a second of audio is 1000 ms at any rate and in chunks of any size."""
    talk = Conversation(config={**STREAMED, "sample_rate": 44100})
    talk.text("One. x")
    talk.accept()
    for _ in range(6300):
        talk.chunk(bytes(2 * 7))
    assert messages(talk.cancel(), "input.cancelled")[0]["sent_ms"] == 1000


def test_a_file_counts_when_it_goes_out() -> None:
    """WEIR-151: audio that was not sent was not heard."""
    talk = Conversation(config={"split_granularity": "sentence"})
    talk.text("One. Two. x")
    talk.accept()
    talk.chunk(b"RIFF")
    talk.complete(samples=12000)
    talk.outcome()
    talk.accept()
    talk.chunk(b"RIFF")
    assert messages(talk.cancel(), "input.cancelled")[0]["sent_ms"] == 500


def open_at(stage: str) -> Conversation:
    talk = Conversation(config=COMMITTED)
    if stage == "ready":
        return talk
    talk.text("One" if stage == "pending" else "One. Two. x")
    if stage in ("streaming", "finishing"):
        talk.accept()
        talk.chunk(b"\0\0")
    if stage == "finishing":
        talk.done()
    if stage == "failed":
        talk.fail(NO)
    return talk


STAGES = {"ready": 0, "pending": 0, "submitted": 1, "streaming": 1, "finishing": 1, "failed": 0}


@pytest.mark.parametrize(("stage", "aborts"), STAGES.items())
def test_a_close_drops_everything_and_says_nothing(stage: str, aborts: int) -> None:
    """WEIR-151: one abort at most, then close 1000 with what is queued discarded."""
    talk = open_at(stage)
    shown = talk.send("session.close")
    assert shown == [AbortSegment("s.0.0")] * aborts + [Close(1000, "", discard=True)]
    assert talk.session.state is State.CLOSED


@pytest.mark.parametrize(("stage", "aborts"), STAGES.items())
def test_a_disconnect_aborts_and_sends_nothing(stage: str, aborts: int) -> None:
    """WEIR-151: there is nobody to send to."""
    talk = open_at(stage)
    assert talk.vanish() == [AbortSegment("s.0.0")] * aborts
    assert talk.session.state is State.CLOSED


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("closing", [True, False])
def test_nothing_happens_after_the_end(stage: str, closing: bool) -> None:
    """WEIR-151: a closed session takes every event and causes no action."""
    talk = open_at(stage)
    if closing:
        talk.send("session.close")
    else:
        talk.vanish()
    assert talk.receive(SegmentUpdated("s.0.0", Outcome(USAGE))) == []
    assert talk.receive(SegmentFailed("s.0.0", NO)) == []
    assert talk.frame("{") == []
    for name in ("session.config", "input.text", "input.done", "input.cancel", "session.close"):
        assert talk.send(name) == []
    assert talk.vanish() == []
    assert talk.shut_down(final=True) == []
    assert talk.wait(1000) == []
    assert talk.session.deadline is None
