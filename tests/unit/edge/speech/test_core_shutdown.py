"""The process is ending: gracefully, then at once."""

from __future__ import annotations

import pytest

from contracts.errors import Reason, failure
from services.edge.speech.events import AbortSegment, Close
from services.edge.speech.transitions import State
from tests.unit.edge.speech.session_fixture import (
    COMMITTED,
    STREAMED,
    Conversation,
    Shown,
    codes,
    kinds,
    messages,
)

GOODBYE = ["error", "close 1012"]
NO = failure(Reason.INTERNAL, "No.")


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("configured", [False, True])
def test_an_idle_session_ends_at_once(final: bool, configured: bool) -> None:
    """IO-INV-103: SHUTTING_DOWN with a delay after which to connect again, close 1012."""
    talk = Conversation(config=STREAMED if configured else None)
    shown = talk.shut_down(final=final)
    assert (kinds(shown), codes(shown)) == (GOODBYE, ["shutting_down"])
    assert messages(shown, "error")[0]["retry_after_ms"] > 0
    assert shown[-1] == Close(1012, "shutting_down")


def test_a_graceful_end_lets_the_utterance_finish() -> None:
    """IO-INV-103: text, end of input and audio go on; after session.done the session ends."""
    talk = Conversation(config=STREAMED)
    talk.text("1. x")
    assert talk.shut_down() == []
    assert talk.shut_down() == []
    assert talk.text(" 2. x") == []
    assert kinds(talk.speak(b"\0\0")) == ["audio.start", "audio", "audio.done", "start s.0.1"]
    talk.done()
    talk.speak()
    assert kinds(talk.speak()) == ["audio.start", "audio.done", "session.done", *GOODBYE]
    assert talk.session.state is State.CLOSED


def end_by(how: str, talk: Conversation) -> list[Shown]:
    if how == "cancel":
        return talk.cancel()
    if how == "end of failed input":
        talk.fail(NO)
        return talk.done()
    if how == "failure after the end":
        talk.done()
        return talk.fail(NO)
    if how == "cancel of a failure":
        talk.fail(NO)
        return talk.cancel()
    assert how == "cancel after the end"
    talk.done()
    return talk.cancel()


@pytest.mark.parametrize(
    "how",
    [
        "cancel",
        "end of failed input",
        "failure after the end",
        "cancel of a failure",
        "cancel after the end",
    ],
)
def test_whatever_ends_the_utterance_ends_the_session(how: str) -> None:
    """WEIR-153: no way out of an utterance leads back to ready in a process that ends."""
    talk = Conversation(config=COMMITTED)
    talk.text("1. x")
    talk.shut_down()
    assert kinds(end_by(how, talk))[-2:] == GOODBYE
    assert talk.session.state is State.CLOSED


def test_nothing_to_say_ends_as_well() -> None:
    """WEIR-153: pending white space is an utterance whose end closes the session."""
    talk = Conversation(config=COMMITTED)
    talk.text(" ")
    talk.shut_down()
    assert kinds(talk.done()) == ["session.done", *GOODBYE]


def test_the_idle_clock_still_runs_in_a_graceful_end() -> None:
    """IO-INV-103: a client that never ends its input does not hold the process up for ever."""
    talk = Conversation(config=COMMITTED)
    talk.text("One")
    talk.shut_down()
    assert kinds(talk.wait(30)) == ["error", "close 1008"]


@pytest.mark.parametrize("ended", [False, True])
def test_a_final_end_aborts_what_is_spoken(ended: bool) -> None:
    """IO-INV-103: one abort, one error with its utterance, close 1012; graceful or not before."""
    talk = Conversation(config=STREAMED)
    talk.text("1. x")
    talk.accept()
    if ended:
        talk.done()
    talk.shut_down()
    shown = talk.shut_down(final=True)
    assert kinds(shown) == ["abort s.0.0", *GOODBYE]
    assert shown[0] == AbortSegment("s.0.0")
    assert messages(shown, "error")[0]["utterance_index"] == 0
    assert messages(talk.everything, "session.done") == []
