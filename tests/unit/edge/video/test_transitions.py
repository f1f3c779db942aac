"""The transition table of the video session, its page, and misuse by our own driver."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from services.edge.session_events import LocalProtocolError
from services.edge.video.core import VideoSession
from services.edge.video.events import Event, FrameReceived
from services.edge.video.messages import CLIENT_MESSAGES
from services.edge.video.transitions import TRANSITIONS, State
from tests.unit.edge.video.session_fixture import Conversation
from tools import draw_video_session

SUBJECTS = [event for event in get_args(Event) if event is not FrameReceived] + [*CLIENT_MESSAGES]


def test_the_table_is_total() -> None:
    """WEIR-153: every client message and every event has its row in every state, and no other."""
    assert set(TRANSITIONS) == {(state, subject) for state in State for subject in SUBJECTS}
    for (state, _), transition in TRANSITIONS.items():
        assert callable(getattr(VideoSession, transition.handler))
        if state is State.CLOSED:
            assert transition.handler == "_ignore"
            assert not transition.targets


def test_the_end_can_be_reached_from_everywhere() -> None:
    """WEIR-153: and there is no way back."""
    order = list(State)
    for (state, _), transition in TRANSITIONS.items():
        assert all(order.index(target) > order.index(state) for target in transition.targets)
    for state in order[:-1]:
        assert any(
            State.CLOSED in transition.targets
            for (origin, _), transition in TRANSITIONS.items()
            if origin is state
        )


def test_an_unknown_event_is_our_own_fault() -> None:
    """WEIR-152: misuse by the driver raises, and leaves the session as it was."""
    talk = Conversation()
    with pytest.raises(LocalProtocolError, match="unstarted knows no str"):
        talk.session.receive("hello", 0.0)  # type: ignore[arg-type]  # this is the misuse
    assert talk.session.state is State.UNSTARTED


def test_the_page_is_drawn_from_the_table() -> None:
    """WEIR-153: the documented states are those of the code, each handler and event once."""
    assert draw_video_session.main(["--check"]) == 0
    assert set(draw_video_session.HANDLERS) == {t.handler for t in TRANSITIONS.values()}
    assert set(draw_video_session.EVENTS) == {event for _, event in TRANSITIONS}
    diagram = draw_video_session.session_page().diagram()
    assert "    unstarted --> starting: session.start" in diagram
    assert "    running --> stopping: session.stop, timer" in diagram


def test_drift_of_the_page_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """WEIR-153: and writing mends it."""
    monkeypatch.setattr(draw_video_session, "ROOT", tmp_path)
    monkeypatch.setattr(draw_video_session, "PAGE", tmp_path / "video-session.md")
    assert draw_video_session.main(["--check"]) == 1
    assert "drift" in capsys.readouterr().err
    assert draw_video_session.main(["--write"]) == 0
    assert draw_video_session.main(["--check"]) == 0
