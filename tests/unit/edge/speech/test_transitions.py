"""The transition table of the session, and misuse by our own driver."""

from __future__ import annotations

from typing import get_args

import pytest

from contracts.modality import Accepted, AudioChunk, AudioEncoding, AudioFormat
from services.edge.speech.core import SpeechSession
from services.edge.speech.events import Event, FrameReceived, LocalProtocolError, SegmentUpdated
from services.edge.speech.messages import CLIENT_MESSAGES
from services.edge.speech.transitions import TRANSITIONS, State
from tests.unit.edge.speech.session_fixture import STREAMED, Conversation

SUBJECTS = [event for event in get_args(Event) if event is not FrameReceived] + [*CLIENT_MESSAGES]


def test_the_table_is_total() -> None:
    """WEIR-153: every client message and every event has its row in every state, and no other."""
    assert set(TRANSITIONS) == {(state, subject) for state in State for subject in SUBJECTS}


def test_every_handler_exists() -> None:
    """WEIR-153: the table names methods of the session."""
    for transition in TRANSITIONS.values():
        assert callable(getattr(SpeechSession, transition.handler))


def test_closed_is_for_ever() -> None:
    """WEIR-153: nothing leads out of the end, and nothing is done there."""
    for (state, _), transition in TRANSITIONS.items():
        if state is State.CLOSED:
            assert transition.handler == "_ignore"
            assert not transition.targets


def test_every_state_can_be_reached_and_left() -> None:
    """WEIR-153: no dead end but the end."""
    reached, frontier = {State.UNCONFIGURED}, [State.UNCONFIGURED]
    while frontier:
        here = frontier.pop()
        for (state, _), transition in TRANSITIONS.items():
            if state is here:
                new = transition.targets - reached
                reached |= new
                frontier += new
    assert reached == set(State)
    for state in set(State) - {State.CLOSED}:
        assert any(t.targets for (origin, _), t in TRANSITIONS.items() if origin is state)


def test_an_unknown_event_is_our_own_fault() -> None:
    """WEIR-152: misuse by the driver raises, and leaves the session as it was."""
    talk = Conversation(config=STREAMED)
    with pytest.raises(LocalProtocolError, match="ready knows no str"):
        talk.session.receive("hello", 0.0)  # type: ignore[arg-type]  # this is the misuse
    assert talk.session.state is State.READY


@pytest.mark.parametrize("twice", [False, True])
def test_updates_out_of_order_are_our_own_fault(twice: bool) -> None:
    """WEIR-152: the backend's order is checked before the session; here it is only relied on."""
    talk = Conversation(config=STREAMED)
    talk.text("One. x")
    accepted = Accepted(AudioFormat(AudioEncoding.PCM, 24000))
    if twice:
        talk.accept()
    update = accepted if twice else AudioChunk(0, b"\0\0")
    with pytest.raises(LocalProtocolError):
        talk.session.receive(SegmentUpdated("s.0.0", update), 0.0)
