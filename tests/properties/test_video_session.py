"""Every order of events a video session can meet, against a model and the laws of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from contracts.errors import Failure, Reason, failure
from contracts.generation import Paused, Resumed, WaitReason
from services.edge.session_events import Close
from services.edge.video.events import AbortGeneration, SendControl, StartGeneration
from services.edge.video.terms import VideoLimits
from tests.properties.video_model import (
    DRAIN_S,
    GATED_S,
    PENDING,
    SESSION_S,
    STALL_S,
    START_S,
    Model,
)
from tests.unit.edge.video.session_fixture import STANDARD, Conversation, Shown, kinds

LIMITS = VideoLimits(
    start_timeout_s=START_S,
    stall_timeout_s=STALL_S,
    gated_timeout_s=GATED_S,
    session_s=SESSION_S,
    drain_s=DRAIN_S,
    pending_interactions=PENDING,
    chunks_ahead=2,
)
IDS = ["a", "b", "c", "d", "e"]
CAUSES: list[tuple[Failure, int]] = [
    (failure(Reason.INTERNAL, "No."), 1011),
    (failure(Reason.BACKEND_UNAVAILABLE, "Gone."), 1011),
    (failure(Reason.SHUTTING_DOWN, "Going."), 1012),
]
TURNS: list[str | float] = [
    *("stop", "drain begins", "bad frame", "replicas"),
    *(29.0, 31.0, 59.5, 61.0, 125.0),
]
ENDS = ["complete", "complete", "fail in band", "give up", "shut down", "vanish"]
FAULTS = ["{", "[]", '{"type":"hello"}', '{"type":"session.interaction"}']

alive = precondition(lambda self: not self.model.over)
running = precondition(lambda self: self.model.admitted)
asked = precondition(lambda self: self.model.admitted and bool(self.model.asked))


class Laws:
    """Reads what a session sends and wants; asserts what holds whatever came before."""

    def __init__(self) -> None:
        self.closed = False
        self.generating = False
        self.terminals = 0
        self.payloads = 0
        self.due: int | None = None
        self.queued: list[str] = []
        self.ended: dict[str, str] = {}

    def read(self, shown: list[Shown]) -> None:
        for item in shown:
            assert not self.closed, "nothing follows a close"
            if self.due is not None:
                assert isinstance(item, bytes), "a binary follows its metadata at once"
            match item:
                case StartGeneration():
                    assert not self.generating, "one generation a connection"
                    self.generating = True
                case AbortGeneration():
                    assert self.generating, "what is aborted has begun"
                case SendControl():
                    assert self.generating
                case bytes():
                    assert len(item) == self.due, "and has the length that was told"
                    self.due = None
                case Close():
                    self.closed = True
                case dict():
                    self._message(item)

    def settled(self) -> None:
        assert sorted(self.ended) == sorted(self.queued), "every queued id has ended once"

    def _message(self, message: dict[str, Any]) -> None:
        assert not self.terminals, "nothing follows the terminal"
        kind = message["type"]
        if kind == "video.chunk_metadata":
            assert message["transport_chunk_index"] == self.payloads
            self.payloads += 1
            self.due = message["byte_length"]
            self._end(message, "completed_event_ids", "superseded_event_ids")
        elif kind == "session.interaction.queued" and message["event_id"] not in self.queued:
            self.queued.append(message["event_id"])
        elif kind == "session.done":
            assert message["chunks"] == self.payloads
        elif kind == "error" and message["code"] == "interaction_failed":
            assert message["event_id"] in self.queued
            self.ended.setdefault(message["event_id"], "failed")
        if "unfinished_event_ids" in message:
            self.terminals += 1
            self._end(message, "superseded_event_ids", "unfinished_event_ids")

    def _end(self, message: dict[str, Any], *lists: str) -> None:
        for name in lists:
            for event_id in message[name]:
                assert event_id in self.queued
                assert event_id not in self.ended, "an id ends once"
                self.ended[event_id] = name


class VideoSessions(RuleBasedStateMachine):
    """A session, its model and its laws.

    Kinds of events that change little, and those that change much, share a rule each: otherwise
    most walks would be over before anything has happened.
    """

    @initialize(
        begun=st.sampled_from([True, True, True, False]),
        realtime=st.booleans(),
        queued=st.lists(st.sampled_from(IDS), max_size=4),
    )
    def begin(self, begun: bool, realtime: bool, queued: list[str]) -> None:
        self.talk = Conversation(limits=LIMITS)
        self.model = Model()
        self.laws = Laws()
        self.trailer = self.vanished = False
        self.active: str | None = None
        if begun:  # most of what can happen happens while a video runs
            self._start("realtime" if realtime else "free", {})
            self.same(self.talk.accept(), self.model.accept())
            for event_id in queued:
                self.interact(event_id, True)
                self._answer(event_id, "session.interaction.queued")

    def same(self, shown: list[Shown], expected: list[str]) -> None:
        assert kinds(shown) == expected
        self.laws.read(shown)

    # The client

    @alive
    @rule(event_id=st.sampled_from(IDS), valid=st.sampled_from([True, True, True, False]))
    def interact(self, event_id: str, valid: bool) -> None:
        more: dict[str, Any] = {} if valid else {"transition_chunks": True}
        self.same(self.talk.interact(event_id, **more), self.model.interact(event_id, valid))

    @alive
    @rule(what=st.sampled_from(["pause", "resume", "playback", "ping", "second start"]))
    def say(self, what: str) -> None:
        match what:
            case "pause":
                self.same(self.talk.send("session.pause"), self.model.pause())
            case "resume":
                self.same(self.talk.send("session.resume"), self.model.resume())
            case "playback":
                shown = self.talk.send("session.playback", position_seconds=1)
                self.same(shown, self.model.playback())
            case "ping":
                self.same(self.talk.send("session.ping"), self.model.ping())
            case "second start" if self.model.phase != "unstarted":
                self.same(self.talk.start(), self.model.start(valid=True))

    @precondition(lambda self: self.model.phase == "unstarted")
    @rule(pace=st.sampled_from(["free", "realtime"]), valid=st.sampled_from([True, True, False]))
    def start(self, pace: str, valid: bool) -> None:
        self._start(pace, {} if valid else {"size": "1x1"})

    def _start(self, pace: str, fields: dict[str, Any]) -> None:
        self.model.realtime = pace == "realtime"
        self.same(self.talk.start(pace=pace, **fields), self.model.start(valid=not fields))

    # The backend

    @precondition(lambda self: self.model.phase == "starting")
    @rule()
    def accept(self) -> None:
        self.same(self.talk.accept(), self.model.accept())

    @precondition(
        lambda self: (
            self.model.admitted
            and not self.trailer
            and sum(self.model.undrained) < LIMITS.chunks_ahead
        )
    )
    @rule(data=st.data())
    def media(self, data: st.DataObject) -> None:
        open_ids = [e for e in self.laws.queued if e not in self.laws.ended]
        lists: dict[str, Any] = {}
        if self.active in open_ids:
            lists["active"] = (self.active,)
        elif open_ids:
            self.active = data.draw(st.sampled_from(open_ids))
            lists["started"] = lists["active"] = (self.active,)
        completes: bool = data.draw(st.booleans())
        if lists and completes:
            lists["completed"] = lists["active"]
        others = [e for e in open_ids if e not in lists.get("active", ())]
        if others:
            lists["superseded"] = tuple(data.draw(st.sets(st.sampled_from(others))))
        self.same(self.talk.chunk(drained=False, **lists), self.model.payload(media=True))

    @precondition(lambda self: bool(self.model.undrained) and not self.model.over)
    @rule()
    def drain(self) -> None:
        self.same(self.talk.drain(), self.model.drained())

    @running
    @rule(
        what=st.sampled_from(["progress", "paused", "resumed", "trailer"])
        | st.sampled_from(list(WaitReason))
    )
    def sign(self, what: str) -> None:
        match what:
            case WaitReason():
                self.same(self.talk.waits(what), self.model.waits(what.value))
            case "progress":
                self.same(self.talk.progress(), self.model.sign_of_life())
            case "paused":
                self.model.waits("pause")
                self.same(self.talk.update(Paused()), ["session.paused"])
            case "resumed":
                self.model.release("pause")
                self.same(self.talk.update(Resumed()), ["session.resumed"])
            case "trailer" if not self.trailer:
                self.trailer = True
                self.same(self.talk.trailer(drained=False), self.model.payload(media=False))

    @asked
    @rule(data=st.data(), queued=st.sampled_from([True, True, True, False]))
    def answer(self, data: st.DataObject, queued: bool) -> None:
        event_id = data.draw(st.sampled_from(self.model.asked))
        self._answer(event_id, "session.interaction.queued" if queued else "event_id_conflict")

    def _answer(self, event_id: str, kind: str) -> None:
        tell = self.talk.refused if kind == "event_id_conflict" else self.talk.queued
        self.same(tell(event_id), self.model.answer(event_id, kind))

    @precondition(lambda self: self.model.admitted and bool(self.laws.queued))
    @rule(data=st.data())
    def fail_one(self, data: st.DataObject) -> None:
        # One that has ended in another way does not fail any more; one that failed is told again.
        able = [e for e in self.laws.queued if self.laws.ended.get(e, "failed") == "failed"]
        if able:
            event_id = data.draw(st.sampled_from(able))
            self.same(self.talk.failed(event_id), ["interaction_failed"])

    # Time and the process

    @alive
    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 9.5]))
    def time_passes(self, seconds: float) -> None:
        self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        self.model.now += seconds
        self.same(self.talk.wait(seconds), self.model.timer())

    @alive
    @rule(what=st.sampled_from(TURNS), text=st.sampled_from(FAULTS))
    def turn(self, what: str | float, text: str) -> None:
        match what:
            case float():
                self._wait(what)
            case "stop":
                self.same(self.talk.send("session.stop"), self.model.stop())
            case "drain begins":
                self.same(self.talk.shut_down(), self.model.shut_down(final=False))
            case "bad frame":
                self.same(self.talk.frame(text), self.model.bad_frame())
            case "replicas":
                self.model.reachable = not self.model.reachable
                there = STANDARD if self.model.reachable else None
                self.same(self.talk.replicas(there), [])

    @alive
    @rule(how=st.sampled_from(ENDS), cause=st.sampled_from(CAUSES), data=st.data())
    def end(self, how: str, cause: tuple[Failure, int], data: st.DataObject) -> None:
        match how:
            case "vanish":
                self.vanished = True
                self.same(self.talk.vanish(), self.model.vanish())
            case "shut down":
                self.same(self.talk.shut_down(final=True), self.model.shut_down(final=True))
            case "complete" if self.model.admitted:
                told = tuple(data.draw(st.sets(st.sampled_from(IDS))))
                self.same(self.talk.complete(superseded=told), self.model.done())
            case "give up" if self.model.phase != "unstarted":
                self._fails(self.talk.give_up, cause)
            case "fail in band" if self.model.admitted:
                self._fails(self.talk.outcome, cause)

    def _fails(self, tell: Callable[[Failure], list[Shown]], cause: tuple[Failure, int]) -> None:
        told, code = cause
        if not self.model.admitted and told.reason is Reason.BACKEND_UNAVAILABLE:
            code = 1013
        expected = self.model.failed(told.reason.value.lower(), code)
        self.same(tell(told), expected)

    @precondition(lambda self: self.model.over)
    @rule(what=st.sampled_from(["session.ping", "session.stop", "drain", "frame", "clock", "end"]))
    def after_the_end(self, what: str) -> None:
        match what:
            case "drain":
                shown = self.talk.drain()
            case "frame":
                shown = self.talk.frame("{")
            case "clock":
                shown = self.talk.wait(1000)
            case "end":
                shown = self.talk.give_up() + self.talk.vanish() + self.talk.shut_down(final=True)
            case _:
                shown = self.talk.send(what)
        assert shown == []

    # What holds at any time

    @invariant()
    def the_state_is_that_of_the_model(self) -> None:
        assert self.talk.session.state.value == self.model.phase

    @invariant()
    def a_deadline_is_there_unless_it_is_over(self) -> None:
        deadline = self.talk.session.deadline
        if self.model.over:
            assert deadline is None
        elif self.model.phase == "unstarted":
            assert deadline == START_S
        else:
            gated = self.model.gate == "credit" and self.model.phase == "stopping"
            assert (deadline is None) is gated

    @invariant()
    def a_session_that_is_over_has_told_everything(self) -> None:
        assert self.laws.due is None
        if self.laws.terminals:
            assert self.laws.closed
            self.laws.settled()
        if self.model.over and not self.vanished:
            assert self.laws.closed


TestVideoSessions = VideoSessions.TestCase
TestVideoSessions.__doc__ = (
    "WEIR-152, WEIR-153, WEIR-154, WEIR-166, WEIR-167, WEIR-168, WEIR-169, WEIR-175: whatever "
    "comes, in whatever order, the session does what the model expects and breaks no law."
)
TestVideoSessions.settings = settings(
    max_examples=400,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
