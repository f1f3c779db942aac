"""The first configuration, later ones, and errors before and after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contracts.errors import Reason, failure
from services.edge.speech.core import MAX_PENDING_WARNINGS
from services.edge.speech.events import Close, FrameRejected
from services.edge.speech.terms import SpeechLimits
from services.edge.speech.transitions import State
from tests.unit.edge.speech.session_fixture import (
    COMMITTED,
    STANDARD,
    STREAMED,
    Conversation,
    codes,
    kinds,
    messages,
)

FAULTS: list[tuple[str, str, str]] = [
    ("bad JSON", "{", "invalid_message"),
    ("an unknown type", '{"type":"hello"}', "invalid_message"),
    ("a wrong field", '{"type":"session.config","speed":9}', "invalid_message"),
    ("an unsupported option", '{"type":"session.config","language":"de"}', "unsupported_option"),
    (
        "an oversized message",
        '{"type":"input.text","text":"' + "x" * 600 + '"}',
        "message_too_large",
    ),
    (
        "an oversized configuration",
        '{"type":"session.config","model":"' + "x" * 900 + '"}',
        "message_too_large",
    ),
]
SMALL = SpeechLimits(config_message_characters=800, message_characters=400)


@pytest.mark.parametrize(("frame", "code"), [row[1:] for row in FAULTS])
def test_a_fault_before_the_first_configuration_closes(frame: str, code: str) -> None:
    """WEIR-152: one error, then close 1008, and the session is over."""
    talk = Conversation(limits=SMALL)
    shown = talk.frame(frame)
    assert kinds(shown) == ["error", "close 1008"]
    assert codes(shown) == [code]
    assert shown[-1] == Close(1008, code)
    assert talk.session.state is State.CLOSED
    assert talk.configure() == []


@pytest.mark.parametrize(("frame", "code"), [row[1:] for row in FAULTS])
def test_the_same_fault_later_is_an_error_only(frame: str, code: str) -> None:
    """WEIR-152: the session and its old configuration go on."""
    talk = Conversation(limits=SMALL, config=STREAMED)
    shown = talk.frame(frame)
    assert (kinds(shown), codes(shown)) == (["error"], [code])
    assert kinds(talk.text("Hi. x")) == ["start s.0.0"]
    assert talk.request.output.encoding.value == "pcm"


@pytest.mark.parametrize(
    "name",
    ["input.text", "input.done", "input.cancel", "input.commit", "input.explain", "session.ping"],
)
def test_the_first_message_is_the_configuration(name: str) -> None:
    """WEIR-152: any other message is an error, close 1008."""
    talk = Conversation()
    shown = talk.send(name)
    assert (kinds(shown), codes(shown)) == (["error", "close 1008"], ["invalid_message"])


def test_a_close_may_come_first() -> None:
    """WEIR-152: whoever connects may leave."""
    assert Conversation().send("session.close") == [Close(1000, "", discard=True)]


def test_a_configuration_is_taken_in_silence() -> None:
    """IO-INV-300: known clients expect no answer to it."""
    talk = Conversation()
    assert talk.configure() == []
    assert talk.session.state is State.READY


def test_a_later_configuration_replaces_the_whole() -> None:
    """WEIR-140: what it leaves out is the default again."""
    talk = Conversation(config=STREAMED)
    assert talk.configure(voice="Lin") == []
    assert talk.text("One. Two. ") == []
    assert kinds(talk.done()) == ["start s.0.0"]
    assert talk.request.text == "One. Two. "
    assert talk.request.output.encoding.value == "wav"
    assert talk.request.voice.voice == "Lin"


@pytest.mark.parametrize(
    "fields",
    [{}, STREAMED, COMMITTED],
    ids=["whole", "sentences", "commitment"],
)
def test_no_configuration_while_an_utterance_is_open(fields: dict[str, Any]) -> None:
    """IO-INV-103: refused while text is buffered, while it is spoken, and after the end."""
    talk = Conversation(config=fields)
    talk.text("Hi. x")
    assert codes(talk.configure()) == ["session_state"]
    talk.done()
    assert codes(talk.configure()) == ["session_state"]
    while not messages(talk.speak(b"\0\0"), "session.done"):
        assert codes(talk.configure()) == ["session_state"]
    assert talk.configure() == []


def test_no_configuration_in_a_failed_utterance() -> None:
    """IO-INV-103: the utterance is still open until its input has ended."""
    talk = Conversation(config=STREAMED)
    talk.text("Hi. x")
    talk.fail(failure(Reason.INTERNAL, "No."))
    assert codes(talk.configure()) == ["session_state"]
    assert kinds(talk.done()) == ["session.done"]
    assert talk.configure() == []


def test_empty_text_does_not_block_a_configuration() -> None:
    """IO-INV-103: empty text opens no utterance."""
    talk = Conversation(config={})
    assert talk.text("") == []
    assert talk.send("input.text") == []
    assert talk.configure(**STREAMED) == []
    assert talk.session.state is State.READY


def test_no_replica_keeps_the_connection() -> None:
    """WEIR-152: BACKEND_UNAVAILABLE, and the configuration may be sent again."""
    talk = Conversation(capabilities=None)
    shown = talk.configure()
    assert (kinds(shown), codes(shown)) == (["error"], ["backend_unavailable"])
    talk.replicas(STANDARD)
    assert talk.configure() == []
    talk.replicas(None)
    assert codes(talk.configure(**STREAMED)) == ["backend_unavailable"]
    assert talk.text("Hi.") == []
    assert talk.done() != []
    assert talk.request.output.encoding.value == "wav"  # the old configuration goes on


@pytest.mark.parametrize("name", ["input.text", "input.done", "input.cancel"])
def test_what_follows_a_configuration_that_could_not_be_held_is_no_fault(name: str) -> None:
    """WEIR-152: a client that goes on is told the same, and is not thrown out."""
    talk = Conversation(capabilities=None)
    talk.configure(**STREAMED)
    shown = talk.send(name)
    assert (kinds(shown), codes(shown)) == (["error"], ["backend_unavailable"])
    assert kinds(talk.send("session.ping")) == ["session.pong"]
    assert kinds(talk.frame("{")) == ["error", "close 1008"]


def test_changed_capabilities_count_from_the_next_configuration() -> None:
    """WEIR-140: what was agreed holds; what is agreed next is held against the new record."""
    talk = Conversation(config=COMMITTED)
    talk.replicas(replace(STANDARD, text_commitment=()))
    assert kinds(talk.text("Hi. x")) == ["start s.0.0"]
    talk.cancel()
    assert codes(talk.configure(**COMMITTED)) == ["unsupported_option"]
    assert kinds(talk.text("Hi. x")) == ["start s.1.0"]


def test_warnings_stand_in_the_first_start_only() -> None:
    """WEIR-141, WEIR-301: unknown keys and what was ignored, once."""
    talk = Conversation()
    assert talk.configure(**STREAMED, voice="Nobody", colour="red") == []
    talk.text("One. Two. ")
    talk.done()
    first, second = (messages(talk.speak(), "audio.start")[0] for _ in range(2))
    assert first["warnings"] == [
        "voice is unknown; the default voice speaks",
        "unknown key ignored: session.config.colour",
    ]
    assert "warnings" not in second


def test_no_warnings_no_field() -> None:
    """IO-INV-300: the field is there when there are any."""
    talk = Conversation(config=STREAMED)
    talk.text("One. x")
    assert "warnings" not in messages(talk.accept(), "audio.start")[0]


def test_a_key_ignored_later_stands_in_the_next_start() -> None:
    """WEIR-301: reported wherever it was sent."""
    talk = Conversation(config=STREAMED)
    talk.send("input.text", text="One. x", lang="en")
    start = messages(talk.accept(), "audio.start")[0]
    assert start["warnings"] == ["unknown key ignored: input.text.lang"]


def test_a_new_configuration_clears_the_warnings_of_the_old() -> None:
    """WEIR-141: a warning about what no longer holds would mislead."""
    talk = Conversation()
    talk.configure(**STREAMED, voice="Nobody", colour="red")
    talk.configure(**STREAMED, shade="red")
    talk.text("One. x")
    start = messages(talk.accept(), "audio.start")[0]
    assert start["warnings"] == ["unknown key ignored: session.config.shade"]


def test_a_refused_configuration_keeps_the_warnings_of_the_old() -> None:
    """WEIR-141: the old configuration holds, and so does what was said about it."""
    talk = Conversation()
    talk.configure(**STREAMED, voice="Nobody")
    assert codes(talk.configure(language="de")) == ["unsupported_option"]
    talk.text("One. x")
    start = messages(talk.accept(), "audio.start")[0]
    assert start["warnings"] == ["voice is unknown; the default voice speaks"]


def test_warnings_are_bounded() -> None:
    """WEIR-301: a client that never synthesizes collects a bounded number of them."""
    talk = Conversation(config=STREAMED)
    for number in range(100):
        talk.send("input.text", text="", **{f"key{number}": 1})
        talk.send("input.text", text="", same=1)
    talk.text("One. x")
    start = messages(talk.accept(), "audio.start")[0]
    assert len(start["warnings"]) == len(set(start["warnings"])) == MAX_PENDING_WARNINGS


@pytest.mark.parametrize("name", ["input.commit", "input.explain"])
@pytest.mark.parametrize("fields", [STREAMED, COMMITTED], ids=["buffered", "commitment"])
def test_messages_that_are_not_offered_are_refused(name: str, fields: dict[str, Any]) -> None:
    """WEIR-140: in every state, with the utterance unharmed."""
    talk = Conversation(config=fields)
    assert codes(talk.send(name)) == ["unsupported_option"]
    talk.text("Hi. x")
    assert codes(talk.send(name)) == ["unsupported_option"]
    talk.done()
    assert codes(talk.send(name)) == ["unsupported_option"]
    talk.speak()
    assert messages(talk.speak(), "session.done") == [
        {"type": "session.done", "utterance_index": 0, "total_sentences": 2}
    ]


def test_a_rejected_frame_changes_nothing() -> None:
    """WEIR-152: whatever the driver rejects, binary frames for one, is an error and no more."""
    talk = Conversation(config=STREAMED)
    talk.text("One. x")
    rejected = FrameRejected(failure(Reason.INVALID_MESSAGE, "Binary is not accepted."))
    assert codes(talk.receive(rejected)) == ["invalid_message"]
    assert kinds(talk.done()) == []
    assert kinds(talk.speak(b"\0\0")) == ["audio.start", "audio", "audio.done", "start s.0.1"]
