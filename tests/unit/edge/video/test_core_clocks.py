"""What takes too long, what stands still meanwhile, and the end of the process."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.generation import Paused, Resumed, Stop, WaitReason
from services.edge.session_events import Close
from services.edge.video.events import AbortGeneration, SendControl
from services.edge.video.terms import VideoLimits
from services.edge.video.transitions import State
from tests.unit.edge.video.session_fixture import Conversation, kinds

STALLED = ["abort", "deadline_exceeded", "close 1011"]
LEFT = ["abort", "stall_timeout", "close 1008"]
DOWN = ["shutting_down", "close 1012"]


def running(**fields: Any) -> Conversation:
    talk = Conversation()
    talk.run(**fields)
    return talk


def test_a_start_must_come_in_time() -> None:
    """WEIR-169: 10 s; a ping does not help."""
    talk = Conversation()
    assert talk.session.deadline == 10.0
    assert talk.wait(9.9) == []
    talk.send("session.ping")
    assert kinds(talk.wait(0.1)) == ["idle_timeout", "close 1008"]


def test_a_generation_without_progress_is_given_up() -> None:
    """WEIR-169: 60 s, from the start on and after each sign of life; a ping is none."""
    talk = Conversation()
    talk.start()
    assert talk.wait(59.9) == []
    talk.accept()
    assert talk.wait(59.9) == []
    talk.progress()
    assert talk.wait(59.9) == []
    talk.chunk()
    assert talk.wait(59.9) == []
    talk.send("session.ping")
    talk.interact("a")
    assert kinds(talk.wait(0.2))[:1] == ["abort"]
    assert kinds(talk.everything[-4:]) == ["abort", "session_state", *STALLED[1:]]


def test_a_replica_that_never_accepts_is_given_up() -> None:
    """WEIR-169: as one that makes no progress."""
    talk = Conversation()
    talk.start()
    assert kinds(talk.wait(60)) == STALLED


@pytest.mark.parametrize("reason", list(WaitReason))
def test_the_watchdog_stands_still_while_generation_waits(reason: WaitReason) -> None:
    """WEIR-169: and runs again with the next sign of life."""
    talk = running()
    talk.chunk(drained=False)
    talk.chunk(drained=False)
    talk.waits(reason)
    assert talk.wait(119.9) == []
    talk.progress()
    assert talk.wait(59.9) == []
    assert kinds(talk.wait(0.1)) == STALLED


def test_a_wait_for_a_credit_has_no_end_of_its_own() -> None:
    """WEIR-169: a slow viewer is the stall watch's; with the credit the watchdog runs again."""
    talk = running()
    talk.chunk(drained=False)
    talk.waits(WaitReason.CREDIT)
    assert talk.wait(600) == []
    talk.drain()
    assert talk.wait(59.9) == []
    assert kinds(talk.wait(0.1)) == STALLED


def test_a_credit_that_is_on_its_way_is_not_waited_for() -> None:
    """WEIR-169: the service's word crossed it, and must not stop the watchdog."""
    talk = running()
    talk.chunk()
    talk.waits(WaitReason.CREDIT)
    assert kinds(talk.wait(60)) == STALLED


@pytest.mark.parametrize("reason", [WaitReason.PAUSE, WaitReason.PLAYBACK])
def test_a_viewer_that_says_nothing_is_given_up(reason: WaitReason) -> None:
    """WEIR-169: 2 minutes without a new report."""
    talk = running(pace="realtime")
    talk.waits(reason)
    assert talk.wait(100) == []
    talk.send("session.playback", position_seconds=1)
    assert talk.wait(119.9) == []
    talk.send("session.ping")
    assert kinds(talk.wait(0.1)) == LEFT


def test_a_change_of_what_is_waited_for_is_no_report() -> None:
    """WEIR-169: a pause on top of a wait for playback begins no new window."""
    talk = running(pace="realtime")
    talk.waits(WaitReason.PLAYBACK)
    talk.wait(100)
    talk.waits(WaitReason.PAUSE)
    assert kinds(talk.wait(20)) == LEFT


def test_a_pause_ends_with_its_resume() -> None:
    """WEIR-169: from then on the service has to go on."""
    talk = running()
    talk.send("session.pause")
    talk.update(Paused())
    talk.wait(100)
    talk.send("session.resume")
    assert talk.wait(59) == []
    talk.update(Resumed())
    assert kinds(talk.wait(1)) == STALLED


def test_a_session_at_its_cap_ends_as_with_a_stop() -> None:
    """WEIR-169: 30 minutes; then the trailer and session.done, close 1000."""
    talk = Conversation(limits=VideoLimits(stall_timeout_s=10_000))
    talk.run(endless=True)
    assert talk.wait(1799.9) == []
    assert talk.wait(0.1) == [SendControl(Stop())]
    assert talk.session.state is State.STOPPING
    talk.trailer()
    assert kinds(talk.complete(stopped=True)) == ["session.done", "close 1000"]


def test_a_stop_that_nothing_follows_is_given_up() -> None:
    """WEIR-169: nothing is waited for after a stop, neither pause nor playback."""
    talk = running(pace="realtime")
    talk.waits(WaitReason.PLAYBACK)
    talk.wait(100)
    talk.send("session.stop")
    assert talk.wait(59.9) == []
    assert kinds(talk.wait(0.1)) == STALLED


def test_a_cap_while_a_replica_is_asked_is_kept() -> None:
    """WEIR-169: the video is stopped as soon as it has begun."""
    talk = Conversation(limits=VideoLimits(session_s=5))
    talk.start()
    assert talk.wait(5) == []
    assert kinds(talk.accept()) == ["video.start", "stop"]


def test_an_early_timer_does_no_harm() -> None:
    """WEIR-169: nor one that goes off again and again."""
    talk = running()
    for _ in range(3):
        assert talk.wait(1) == []
    assert talk.session.deadline == 60.0


def test_a_drain_lets_a_short_video_end() -> None:
    """WEIR-181: nothing of it is lost, and it ends as any other."""
    talk = running()
    assert talk.shut_down() == []
    talk.chunk()
    talk.trailer()
    assert kinds(talk.complete()) == ["session.done", "close 1000"]


def test_a_drain_stops_a_long_video_cleanly() -> None:
    """WEIR-181: after a while, with its trailer; the close says why."""
    talk = running(endless=True)
    talk.shut_down()
    assert talk.wait(14.9) == []
    assert talk.wait(0.1) == [SendControl(Stop())]
    talk.trailer()
    assert talk.complete(stopped=True)[1:] == [Close(1012, "shutting_down")]


@pytest.mark.parametrize("final", [True, False])
def test_what_has_not_started_is_sent_away(final: bool) -> None:
    """WEIR-181: a client without a video goes elsewhere at once."""
    assert kinds(Conversation().shut_down(final=final)) == DOWN
    talk = Conversation()
    talk.start()
    assert kinds(talk.shut_down(final=final)) == ["abort", *DOWN]


def test_the_end_of_a_drain_ends_everything() -> None:
    """WEIR-181: with what became of the interactions."""
    talk = running()
    talk.interact("a")
    talk.queued("a")
    talk.shut_down()
    shown = talk.shut_down(final=True)
    assert kinds(shown) == ["abort", *DOWN]
    assert shown[0] == AbortGeneration()
    error = shown[1]
    assert isinstance(error, dict)
    assert error["unfinished_event_ids"] == ["a"]
    assert error["retry_after_ms"] == 1000
