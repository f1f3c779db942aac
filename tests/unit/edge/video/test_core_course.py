"""The course of a video: start, payloads, credits, pause, stop, and every way it ends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from contracts.errors import GrpcCode, Reason, failure
from contracts.generation import (
    Accepted,
    Chunk,
    Credit,
    Pause,
    Paused,
    Playback,
    Progress,
    Resume,
    Resumed,
    Stop,
)
from contracts.video import VideoCodec
from services.edge.session_events import Close, LocalProtocolError
from services.edge.video.events import (
    AbortGeneration,
    ChunkDrained,
    GenerationUpdated,
    SendChunk,
    SendControl,
)
from services.edge.video.transitions import State
from tests.unit.edge.video.session_fixture import DOWN, STANDARD, Conversation, kinds


def running(**fields: Any) -> Conversation:
    talk = Conversation()
    talk.run(**fields)
    return talk


def test_a_video_from_its_start_to_its_end() -> None:
    """IO-INV-101, WEIR-154: start, payloads, trailer, one terminal, close 1000."""
    talk = Conversation()
    assert kinds(talk.start()) == ["start"]
    assert kinds(talk.accept()) == ["video.start"]
    for _ in range(2):
        assert kinds(talk.chunk()) == ["video.chunk_metadata", "binary", "credit"]
    assert kinds(talk.trailer()) == ["video.chunk_metadata", "binary"]
    shown = talk.complete()
    assert shown == [
        {
            "type": "session.done",
            "request_id": "video_stream-1",
            "chunks": 3,
            "stopped": False,
            "superseded_event_ids": [],
            "unfinished_event_ids": [],
        },
        Close(1000, ""),
    ]
    assert talk.session.state is State.CLOSED


def test_a_chunk_is_described_before_it_comes() -> None:
    """WEIR-168: one action holds the metadata and its bytes, which belong together."""
    talk = running()
    talk.interact("a")
    talk.queued("a")
    lists: dict[str, Any] = {
        "started": ("a",),
        "active": ("a",),
        "prompt_progress": 0.5,
        "pts_seconds": 0.0,
    }
    metadata, data, _ = talk.chunk(b"12345", **lists)
    assert data == b"12345"
    assert metadata == {
        "type": "video.chunk_metadata",
        "request_id": "video_stream-1",
        "kind": "media",
        "transport_chunk_index": 0,
        "generation_chunk_index": 0,
        "num_frames": 9,
        "byte_length": 5,
        "started_event_ids": ["a"],
        "active_event_ids": ["a"],
        "completed_event_ids": [],
        "superseded_event_ids": [],
        "prompt_progress": 0.5,
        "pts_seconds": 0.0,
    }
    trailer = talk.trailer(b"end")[0]
    assert isinstance(trailer, dict)
    assert (trailer["kind"], trailer["generation_chunk_index"]) == ("trailer", None)
    assert (trailer["num_frames"], trailer["byte_length"]) == (0, 3)
    assert trailer["prompt_progress"] is None
    assert trailer["pts_seconds"] is None


def test_nothing_is_sent_between_metadata_and_binary() -> None:
    """WEIR-168: the session has no action that is a metadata message alone."""
    talk = running()
    update = GenerationUpdated(Chunk(0, 0, 9, b"media"))
    (action,) = talk.session.receive(update, 0.0)
    assert isinstance(action, SendChunk)
    assert action.metadata.byte_length == len(action.data)


def test_a_credit_follows_the_socket() -> None:
    """WEIR-175: a chunk that has not been written gives nothing back; a trailer cost nothing."""
    talk = running()
    assert kinds(talk.chunk(drained=False)) == ["video.chunk_metadata", "binary"]
    assert kinds(talk.chunk(drained=False)) == ["video.chunk_metadata", "binary"]
    assert talk.drain() == [SendControl(Credit(1))]
    assert talk.drain() == [SendControl(Credit(1))]
    talk.trailer(drained=False)
    assert talk.drain() == []
    with pytest.raises(LocalProtocolError):
        talk.session.receive(ChunkDrained(), 0.0)


def test_a_ping_is_answered_at_any_time() -> None:
    """WEIR-154: with the request id once there is one."""
    talk = Conversation()
    assert talk.send("session.ping") == [{"type": "session.pong"}]
    talk.start()
    assert talk.send("session.ping") == [{"type": "session.pong"}]
    talk.accept()
    for _ in range(2):
        (pong,) = talk.send("session.ping")
        assert pong == {"type": "session.pong", "request_id": "video_stream-1"}
        talk.send("session.stop")


def test_a_second_start_is_refused_and_changes_nothing() -> None:
    """WEIR-154: a connection carries one generation."""
    talk = Conversation()
    talk.start()
    assert kinds(talk.start()) == ["session_state"]
    talk.accept()
    assert kinds(talk.start(prompt="Another.")) == ["session_state"]
    talk.send("session.stop")
    assert kinds(talk.start()) == ["session_state"]
    assert kinds(talk.complete(stopped=True)) == ["session.done", "close 1000"]


@pytest.mark.parametrize("name", ["session.stop", "session.pause", "session.resume"])
def test_before_a_start_there_is_nothing_to_control(name: str) -> None:
    """WEIR-176: an error, and the connection stays open."""
    talk = Conversation()
    assert kinds(talk.send(name)) == ["session_state"]
    assert kinds(talk.send("session.playback", position_seconds=1)) == ["session_state"]
    assert kinds(talk.start()) == ["start"]


def test_pause_and_resume_are_passed_on_and_their_answers_back() -> None:
    """WEIR-154: the service says when it stands still."""
    talk = running()
    assert talk.send("session.pause") == [SendControl(Pause())]
    assert talk.update(Paused()) == [{"type": "session.paused", "request_id": "video_stream-1"}]
    assert talk.send("session.resume") == [SendControl(Resume())]
    assert talk.update(Resumed()) == [{"type": "session.resumed", "request_id": "video_stream-1"}]


@pytest.mark.parametrize(("pace", "passed"), [("realtime", True), ("free", False)])
def test_playback_counts_with_the_pace_realtime_only(pace: str, passed: bool) -> None:
    """WEIR-157: with free it is only validated."""
    talk = running(pace=pace)
    expected = [SendControl(Playback(1.5))] if passed else []
    assert talk.send("session.playback", position_seconds=1.5) == expected
    for bad in (-1, "1", True, None):
        assert kinds(talk.send("session.playback", position_seconds=bad)) == ["invalid_message"]
    assert kinds(talk.frame('{"type":"session.playback","position_seconds":1e999}')) == [
        "invalid_message"
    ]


def test_a_stop_lets_the_rest_come() -> None:
    """IO-INV-101: the chunk in progress, the trailer, then the terminal that says so."""
    talk = running()
    talk.chunk()
    assert talk.send("session.stop") == [SendControl(Stop())]
    assert talk.send("session.stop") == []
    assert kinds(talk.send("session.pause")) == ["session_state"]
    assert kinds(talk.send("session.resume")) == ["session_state"]
    assert talk.send("session.playback", position_seconds=1) == []
    assert kinds(talk.chunk()) == ["video.chunk_metadata", "binary", "credit"]
    talk.trailer()
    done = talk.complete(stopped=True)[0]
    assert isinstance(done, dict)
    assert (done["stopped"], done["chunks"]) == (True, 3)


def test_a_stop_before_the_video_starts_is_kept() -> None:
    """WEIR-154: it takes effect as soon as there is something to stop."""
    talk = Conversation()
    talk.start()
    assert talk.send("session.stop") == []
    assert kinds(talk.accept()) == ["video.start", "stop"]
    assert talk.session.state is State.STOPPING


FAULTS: list[tuple[Reason, int]] = [
    (Reason.INTERNAL, 1011),
    (Reason.BACKEND_UNAVAILABLE, 1011),
    (Reason.DEADLINE_EXCEEDED, 1011),
    (Reason.SHUTTING_DOWN, 1012),
    (Reason.OVERLOADED, 1011),  # 1013 is the code of a refused admission.
]


@pytest.mark.parametrize("in_band", [True, False])
@pytest.mark.parametrize(("reason", "code"), FAULTS)
def test_a_failed_generation_ends_with_an_error(reason: Reason, code: int, in_band: bool) -> None:
    """WEIR-154, WEIR-167: what became of every interaction, no trailer, no session.done."""
    talk = running()
    for event_id in "abcd":
        talk.interact(event_id)
        talk.queued(event_id)
    talk.chunk(started=("a",), active=("a",), completed=("a",))
    cause = failure(reason, "It failed.")
    shown = talk.outcome(cause, superseded=("b",)) if in_band else talk.give_up(cause)
    error = shown[0]
    assert isinstance(error, dict)
    assert (error["code"], error["message"]) == (reason.value.lower(), "It failed.")
    assert error["request_id"] == "video_stream-1"
    assert error["superseded_event_ids"] == (["b"] if in_band else [])
    assert error["unfinished_event_ids"] == (["c", "d"] if in_band else ["b", "c", "d"])
    assert kinds(shown[1:]) == [f"close {code}"]


REFUSALS: list[tuple[Reason, int]] = [
    (Reason.OVERLOADED, 1013),
    (Reason.BACKEND_UNAVAILABLE, 1013),
    (Reason.SHUTTING_DOWN, 1012),
    (Reason.INVALID_MESSAGE, 1008),
    (Reason.UNSUPPORTED_OPTION, 1008),
    (Reason.INTERNAL, 1011),
    (Reason.DEADLINE_EXCEEDED, 1011),
]


@pytest.mark.parametrize(("reason", "code"), REFUSALS)
def test_a_generation_that_is_not_admitted_closes(reason: Reason, code: int) -> None:
    """WEIR-154: an error without a request id; the delay of a refusal is passed on."""
    talk = Conversation()
    talk.start()
    retry = 700 if reason in (Reason.OVERLOADED, Reason.BACKEND_UNAVAILABLE) else None
    error, close = talk.give_up(failure(reason, "No.", retry_after_ms=retry))
    assert isinstance(error, dict)
    assert error.get("retry_after_ms") == retry
    assert "request_id" not in error
    assert "unfinished_event_ids" not in error
    assert close == Close(code, reason.value.lower())


def test_without_a_replica_there_is_no_video() -> None:
    """WEIR-154: told at once, to be tried again."""
    error, close = Conversation(capabilities=None).start()
    assert isinstance(error, dict)
    assert (error["code"], error["retry_after_ms"]) == ("backend_unavailable", 1000)
    assert close == Close(1013, "backend_unavailable")


def test_replicas_that_come_later_serve() -> None:
    """WEIR-149: what counts is what is reachable when the start comes."""
    talk = Conversation(capabilities=None)
    talk.replicas(STANDARD)
    assert kinds(talk.start()) == ["start"]


@pytest.mark.parametrize("text", ["{", "[]", '{"type":"hello"}', '{"type":"session.start"}'])
def test_a_bad_first_frame_closes_and_a_later_one_does_not(text: str) -> None:
    """WEIR-152: 1008 at the start; afterwards the video goes on."""
    assert kinds(Conversation().frame(text)) == ["invalid_message", "close 1008"]
    talk = Conversation()
    talk.start()
    assert kinds(talk.frame(text)) == ["invalid_message"]
    talk.accept()
    assert kinds(talk.frame(text)) == ["invalid_message"]
    assert kinds(talk.chunk()) == ["video.chunk_metadata", "binary", "credit"]


def test_a_message_beyond_its_limit_is_refused() -> None:
    """WEIR-210: 128 Ki characters for controls, 4 Mi for a start; both are told."""
    talk = running()
    assert kinds(talk.interact("a", prompt="x" * 131_072)) == ["message_too_large"]
    assert kinds(Conversation().start(unheard="x" * 131_072)) == ["start"]
    assert kinds(Conversation().start(unheard="x" * 4_194_304)) == [
        "message_too_large",
        "close 1008",
    ]


@pytest.mark.parametrize("begun", [False, True])
def test_a_peer_that_vanishes_frees_the_replica(begun: bool) -> None:
    """WEIR-163: what runs is aborted, and nothing is said to nobody."""
    talk = Conversation()
    if begun:
        talk.run()
    assert talk.vanish() == ([AbortGeneration()] if begun else [])
    assert talk.session.deadline is None
    assert talk.give_up(DOWN) == []


def test_after_the_end_nothing_causes_anything() -> None:
    """WEIR-154: one terminal, the close, and nothing more."""
    talk = running()
    talk.chunk(drained=False)
    talk.complete()
    assert talk.drain() == []
    assert talk.send("session.ping") == []
    assert talk.interact("a") == []
    assert talk.frame("{") == []
    assert talk.wait(10_000) == []
    assert talk.shut_down(final=True) == []
    assert talk.vanish() == []


@pytest.mark.parametrize("early", [True, False])
def test_a_service_out_of_order_is_cut_off(early: bool) -> None:
    """WEIR-152: the order is checked before the session; a gap in that check raises nothing."""
    talk = Conversation()
    talk.start()
    if not early:
        talk.accept()
    again = Accepted(16, 16, Fraction(24), VideoCodec.H264, "m", 9, 12, None, 3, 0)
    update = Progress(0, 1) if early else again
    shown = talk.session.receive(GenerationUpdated(update), 0.0)
    assert shown[0] == AbortGeneration()
    assert shown[-1] == Close(1011, "internal")


def test_a_failure_keeps_its_sentence() -> None:
    """WEIR-201: fixed sentences of the registry pass; codes of the wire do not show."""
    talk = running()
    cause = failure(Reason.INTERACTION_FAILED, "No updates.", code=GrpcCode.UNIMPLEMENTED)
    talk.interact("a")
    talk.queued("a")
    (error,) = talk.failed("a", cause)
    assert error == {
        "type": "error",
        "message": "No updates.",
        "code": "interaction_failed",
        "request_id": "video_stream-1",
        "event_id": "a",
    }
