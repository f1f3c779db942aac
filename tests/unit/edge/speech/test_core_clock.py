"""The clocks: the wait for the first configuration, and the idle window."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import Reason, failure
from services.edge.speech.terms import SpeechLimits
from services.edge.speech.transitions import State
from tests.unit.edge.speech.session_fixture import (
    COMMITTED,
    STANDARD,
    STREAMED,
    Conversation,
    Shown,
    codes,
    kinds,
)

NO = failure(Reason.INTERNAL, "No.")
TIMED_OUT = (["error", "close 1008"], ["idle_timeout"])


def outcome(shown: list[Shown]) -> tuple[list[str], list[str]]:
    return kinds(shown), codes(shown)


def test_the_first_configuration_has_ten_seconds() -> None:
    """IO-INV-103: at the very deadline the session ends, and not before."""
    talk = Conversation()
    assert talk.session.deadline == 10
    assert talk.wait(9.999) == []
    assert outcome(talk.wait(0.001)) == TIMED_OUT
    assert talk.session.state is State.CLOSED


def test_a_configuration_in_time_begins_the_idle_window() -> None:
    """IO-INV-103: thirty seconds from the configuration."""
    talk = Conversation()
    talk.wait(9.999)
    talk.configure(**STREAMED)
    assert talk.session.deadline == 39.999
    assert talk.wait(29.999) == []
    assert outcome(talk.wait(0.002)) == TIMED_OUT


def test_an_early_or_late_timer_does_no_harm() -> None:
    """IO-INV-103: the deadline counts, not how often the timer goes off."""
    talk = Conversation(config=STREAMED)
    for _ in range(10):
        assert talk.wait(2.5) == []
    assert outcome(talk.wait(100)) == TIMED_OUT
    assert talk.wait(100) == []


def test_the_limits_are_settings() -> None:
    """IO-INV-103: the windows come from the session's limits."""
    talk = Conversation(limits=SpeechLimits(config_timeout_s=1, idle_timeout_s=2))
    assert talk.session.deadline == 1
    talk.configure()
    assert talk.session.deadline == 2


RESETS: list[tuple[str, dict[str, Any], str, bool]] = [
    ("session.config", {}, "ready", True),
    ("session.config", {"language": "de"}, "ready", False),
    ("session.config", {}, "pending", False),
    ("input.text", {"text": "More"}, "ready", True),
    ("input.text", {"text": "More"}, "pending", True),
    ("input.text", {"text": ""}, "ready", False),
    ("input.text", {"text": ""}, "pending", False),
    ("input.text", {"text": 7}, "pending", False),
    ("input.text", {"text": "More"}, "failed", False),
    ("input.done", {}, "ready", True),
    ("input.done", {}, "failed", True),
    ("session.ping", {}, "ready", True),
    ("session.ping", {}, "pending", False),
    ("session.ping", {}, "failed", False),
    ("input.cancel", {}, "ready", False),
    ("input.commit", {}, "ready", False),
    ("input.explain", {"text": "a"}, "pending", False),
    ("hello", {}, "ready", False),
    ("hello", {}, "pending", False),
]


@pytest.mark.parametrize(("name", "fields", "stage", "resets"), RESETS)
def test_what_begins_a_new_idle_window(
    name: str, fields: dict[str, Any], stage: str, resets: bool
) -> None:
    """IO-INV-103: valid text, end of input and configuration; a ping only between utterances."""
    talk = Conversation(config=COMMITTED)
    if stage != "ready":
        talk.text("One" if stage == "pending" else "One. x")
    if stage == "failed":
        talk.fail(NO)
    talk.now = 20
    talk.send(name, **fields)
    assert talk.session.deadline == (50 if resets else 30)


def test_a_pong_answers_a_ping_in_every_state() -> None:
    """IO-INV-103: whether or not it resets the window."""
    talk = Conversation(config=STREAMED)
    assert talk.send("session.ping") == [{"type": "session.pong"}]
    talk.text("One. x")
    assert talk.send("session.ping") == [{"type": "session.pong"}]
    talk.done()
    assert talk.send("session.ping") == [{"type": "session.pong"}]


@pytest.mark.parametrize("fields", [STREAMED, COMMITTED], ids=["buffered", "commitment"])
def test_the_window_stands_still_while_committed_text_is_unspoken(fields: dict[str, Any]) -> None:
    """IO-INV-103: staged, queued or in flight; then a full fresh window begins."""
    talk = Conversation(config=fields)
    talk.text("1. 2. 3. x")
    for _ in range(3):
        assert talk.session.deadline is None
        assert talk.wait(1000) == []
        talk.accept()
        assert talk.session.deadline is None
        assert talk.wait(1000) == []
        talk.chunk(b"\0\0")
        talk.complete()
        assert talk.session.deadline is None
        talk.outcome()
    assert talk.session.deadline == talk.now + 30


def test_unresolved_text_alone_does_not_stop_the_window() -> None:
    """IO-INV-103: pending and buffered text wait for the client, so the window runs."""
    for fields in ({}, COMMITTED):
        talk = Conversation(config=fields)
        talk.text("One")
        assert talk.session.deadline == 30
        shown = talk.wait(30)
        assert outcome(shown) == TIMED_OUT
        assert isinstance(shown[0], dict)
        assert shown[0]["utterance_index"] == 0


def test_text_while_busy_does_not_start_the_window() -> None:
    """IO-INV-103: the window begins when the work has settled, not when the text came."""
    talk = Conversation(config=COMMITTED)
    talk.text("1. x")
    talk.now = 5
    talk.text("2")
    assert talk.session.deadline is None
    talk.now = 100
    talk.speak()
    assert talk.session.deadline == 130


@pytest.mark.parametrize("settle", ["session.done", "failure", "cancel", "too large"])
def test_every_way_to_settle_begins_a_window(settle: str) -> None:
    """IO-INV-103: success, failure, cancel, and a file above its limit."""
    talk = Conversation(config={}, limits=SpeechLimits(segment_file_bytes=1))
    talk.text("1.")
    talk.done()
    talk.accept()
    talk.now = 500
    if settle == "session.done":
        talk.complete()
        talk.outcome()
    elif settle == "failure":
        talk.fail(NO)
    elif settle == "cancel":
        talk.cancel()
    else:
        talk.chunk(b"12")
    assert talk.session.deadline == 530


def test_the_window_runs_after_a_failure_before_the_end_of_input() -> None:
    """IO-INV-103: a client that forgets the end of input does not hold the session for ever."""
    talk = Conversation(config=STREAMED)
    talk.text("1. x")
    talk.fail(NO)
    assert outcome(talk.wait(30)) == TIMED_OUT


def test_nothing_said_is_an_end_of_input_all_the_same() -> None:
    """IO-INV-103: input.done alone resets the window."""
    talk = Conversation(config=STREAMED)
    talk.now = 29
    talk.done()
    assert talk.session.deadline == 59


def test_the_first_configuration_is_waited_for_while_no_replica_is_there() -> None:
    """IO-INV-103: a client that asks again as it was told to is not thrown out."""
    talk = Conversation(capabilities=None)
    talk.now = 9
    talk.configure()
    assert talk.session.deadline == 19
    talk.replicas(STANDARD)
    talk.configure()
    assert talk.session.deadline == 39
