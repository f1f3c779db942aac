"""A failed segment fails its utterance and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import FALLBACK, REGISTRY, GrpcCode, Reason, failure
from services.edge.speech.delivery import segment_failure
from services.edge.speech.transitions import State
from tests.unit.edge.speech.session_fixture import (
    COMMITTED,
    STREAMED,
    Conversation,
    codes,
    kinds,
    messages,
)

NO = failure(Reason.INTERNAL, "No.")
MODES: list[dict[str, Any]] = [STREAMED, COMMITTED]


@pytest.mark.parametrize("fields", MODES, ids=["buffered", "commitment"])
@pytest.mark.parametrize("accepted", [False, True])
def test_later_segments_never_start(fields: dict[str, Any], accepted: bool) -> None:
    """IO-INV-103: neither those that waited nor those that more text would have made."""
    talk = Conversation(config=fields)
    talk.text("1. 2. 3. x")
    if accepted:
        talk.accept()
    assert kinds(talk.fail(NO)) == (["error", "audio.done"] if accepted else ["error"])
    assert talk.session.state is State.FAILED
    assert codes(talk.text("4. 5. x")) == ["utterance_failed"]
    assert talk.text("") == []
    assert kinds(talk.done()) == ["session.done"]
    assert len(talk.requests) == 1


@pytest.mark.parametrize("accepted", [False, True])
def test_a_failed_utterance_ends_like_any_other(accepted: bool) -> None:
    """IO-INV-101: session.done counts what had started; the next utterance is clean."""
    talk = Conversation(config=STREAMED)
    talk.text("1. 2. x")
    talk.speak(b"\0\0")
    if accepted:
        talk.accept()
    talk.fail(NO)
    expected = {"type": "session.done", "utterance_index": 0, "total_sentences": 1 + accepted}
    assert talk.done() == [expected]
    talk.text("Clean.")
    assert kinds(talk.done()) == ["start s.1.0"]
    start = messages(talk.accept(), "audio.start")[0]
    assert (start["utterance_index"], start["sentence_index"], start["source_start"]) == (1, 0, 0)


def test_a_failure_after_the_end_of_input_ends_the_utterance() -> None:
    """IO-INV-101: session.done at once, since nothing is left to do."""
    talk = Conversation(config=STREAMED)
    talk.text("1. 2. 3.")
    talk.done()
    talk.accept()
    assert kinds(talk.fail(NO)) == ["error", "audio.done", "session.done"]
    assert talk.session.state is State.READY


def test_text_that_fails_at_the_end_of_a_failed_utterance_is_not_flushed() -> None:
    """IO-INV-103: end of input after a failure flushes nothing."""
    talk = Conversation(config=COMMITTED)
    talk.text("1. pending")
    talk.fail(NO)
    assert kinds(talk.done()) == ["session.done"]
    assert len(talk.requests) == 1


def test_the_end_of_input_waits_for_the_segment_in_flight() -> None:
    """IO-INV-101: a text failure leaves the segment in flight; session.done comes after it."""
    talk = Conversation(config=COMMITTED)
    talk.text("1. x")
    talk.text("x" * 5000)
    assert codes(talk.everything) == ["pending_text_limit"]
    assert talk.done() == []
    assert talk.session.state is State.FINISHING
    assert kinds(talk.speak(b"\0\0")) == ["audio.start", "audio", "audio.done", "session.done"]


def test_both_the_text_and_the_segment_may_fail() -> None:
    """IO-INV-103: each is told, once, and the utterance ends once."""
    talk = Conversation(config=COMMITTED)
    talk.text("1. x")
    talk.text("x" * 5000)
    assert codes(talk.fail(NO)) == ["segment_failed"]
    assert kinds(talk.done()) == ["session.done"]


def test_a_second_failure_of_a_segment_is_nothing() -> None:
    """WEIR-151: what has ended has no more news."""
    talk = Conversation(config=STREAMED)
    talk.text("1. x")
    talk.fail(NO)
    assert talk.fail(NO) == []


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("code", [code for code in GrpcCode if code is not GrpcCode.OK])
def test_every_failure_of_a_backend_has_a_place(reason: Reason, code: GrpcCode) -> None:
    """WEIR-200: SEGMENT_FAILED keeps the backend's own code, and its reason is the cause."""
    if code not in REGISTRY[reason].grpc_codes:
        with pytest.raises(ValueError, match="travel"):
            failure(reason, "No.", code=code)
        return
    cause = failure(reason, "No.", code=code)
    assert segment_failure(cause).code is code
    talk = Conversation(config=STREAMED)
    talk.text("1. x")
    error = messages(talk.fail(cause), "error")[0]
    known = FALLBACK[code] if reason is Reason.SEGMENT_FAILED else reason
    assert (error["code"], error["cause"]) == ("segment_failed", known.value.lower())
    assert talk.session.state is State.FAILED
