"""The video session: a pure state machine, without sockets, threads or a clock.

Owns: what each event makes happen. Does not own: which events are taken in which state
(`transitions`), I/O and time (`driver`), what a start means (`negotiation`), the account of the
interactions (`ledger`), deadlines (`clocks`). Enforces: WEIR-154 (one generation a connection, and
one terminal: `session.done` or an error, then the close and nothing more), WEIR-175 (a credit is
given back when a chunk has been written, and not before), WEIR-176 (before `video.start` and after
a stop interactions are refused and leave no trace), WEIR-177 (at most so many interactions wait for
an answer), WEIR-152 (a peer's fault never raises).
"""

from __future__ import annotations

from collections import deque

from contracts.errors import Failure
from contracts.generation import (
    Accepted,
    Chunk,
    Credit,
    GenerationUpdate,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
    Outcome,
    Pause,
    Paused,
    Playback,
    Progress,
    Resume,
    Resumed,
    Stop,
    VideoCompleted,
    Waiting,
    WaitReason,
)
from contracts.video import Pace, VideoCapabilities
from services.edge.admission import SHUTTING_DOWN
from services.edge.session_events import (
    Close,
    FrameRejected,
    LocalProtocolError,
    ShutdownRequested,
    check_move,
    transition_of,
)
from services.edge.video.clocks import Alarm, GenerationClocks
from services.edge.video.delivery import chunk_message, done_message, start_message
from services.edge.video.events import (
    AbortGeneration,
    Action,
    CapabilitiesChanged,
    Event,
    FrameReceived,
    GenerationFailed,
    GenerationUpdated,
    SendControl,
    SendMessage,
    StartGeneration,
)
from services.edge.video.interactions import RefusedInteraction, event_id_of, read_interaction
from services.edge.video.ledger import InteractionLedger, LedgerError
from services.edge.video.messages import (
    InteractionQueuedMessage,
    SessionInteraction,
    SessionPaused,
    SessionPlayback,
    SessionPong,
    SessionResumed,
    SessionStart,
)
from services.edge.video.negotiation import Agreement, negotiate
from services.edge.video.refusals import (
    BROKEN,
    NOT_TAKEN,
    UNREACHABLE,
    close_code,
    error_message,
    no_progress,
    no_report,
    no_start,
    terminal_message,
    too_many,
    unread_keys,
    wrong_state,
)
from services.edge.video.terms import VideoTerms
from services.edge.video.transitions import TRANSITIONS, State


class VideoSession:
    """One connection to the video endpoint.

    `receive` takes one event and the monotonic time in seconds, and returns what is to be done, in
    order. `deadline` says when to call it with `ClockReached`; None means never.
    """

    def __init__(self, terms: VideoTerms, now: float) -> None:
        self.state = State.UNSTARTED
        self._terms = terms
        self._limits = terms.limits
        self._start_by = now + terms.limits.start_timeout_s
        self._capabilities: VideoCapabilities | None = None
        self._agreement: Agreement | None = None
        self._clocks = GenerationClocks(terms.limits, now)
        self._ledger = InteractionLedger()
        self._reported: tuple[str, ...] = ()
        self._admitted = False
        self._stop_wanted = False
        self._draining = False
        self._stopped_by_drain = False
        self._payloads = 0
        self._undrained: deque[bool] = deque()

    @property
    def deadline(self) -> float | None:
        """Monotonic time in seconds at which something has taken too long; None while nothing can.

        It may move forward at any event.
        """
        if self.state is State.CLOSED:
            return None
        when = self._start_by if self.state is State.UNSTARTED else self._clocks.deadline
        return None if when == float("inf") else when

    def receive(self, event: Event, now: float) -> list[Action]:
        """Take one event in; return the actions it causes, in order.

        Raises LocalProtocolError when the driver breaks the rules, never for what a peer does.
        """
        subject = event.message if isinstance(event, FrameReceived) else event
        transition = transition_of(TRANSITIONS, self.state, subject)
        self._reported = event.warnings if isinstance(event, FrameReceived) else ()
        if self._refuses_keys(subject):
            return [self._error(unread_keys(self._reported), _event_id(subject))]
        before = self.state
        actions: list[Action] = getattr(self, transition.handler)(subject, now)
        check_move(transition, before, self.state)
        return actions

    def _refuses_keys(self, subject: object) -> bool:
        # A start tells its own warnings, or is refused for them together with all others.
        strict = self._terms.strict and self.state is not State.CLOSED
        return strict and bool(self._reported) and not isinstance(subject, SessionStart)

    # The start

    def _start(self, start: SessionStart, now: float) -> list[Action]:
        if self._capabilities is None:
            return self._fail(UNREACHABLE)
        agreement = negotiate(start, self._reported, self._capabilities, self._terms)
        if isinstance(agreement, Failure):
            return self._fail(agreement)
        self._agreement = agreement
        self._clocks = GenerationClocks(self._limits, now)
        self.state = State.STARTING
        return [StartGeneration(agreement.request)]

    def _admit(self, event: GenerationUpdated, now: float) -> list[Action]:
        agreement = self._agreement
        if not isinstance(event.update, Accepted) or agreement is None:
            return self._break()
        self._admitted = True
        self._clocks.progressed(now)
        self.state = State.RUNNING
        actions: list[Action] = [start_message(agreement, event.update, self._terms)]
        if self._stop_wanted:
            actions += self._stop(event, now)
        return actions

    def _refuse_start(self, _event: object, now: float) -> list[Action]:
        # WEIR-154
        return [self._error(wrong_state("A connection carries one generation; it has begun."))]

    def _refuse_early(self, _event: object, now: float) -> list[Action]:
        return [self._error(wrong_state("This message is taken after video.start."))]

    def _refuse_stopped(self, _event: object, now: float) -> list[Action]:
        return [self._error(wrong_state("The generation is ending."))]

    # What the client steers

    def _refuse_interaction(self, message: SessionInteraction, now: float) -> list[Action]:
        # WEIR-176
        refusal = wrong_state("Interactions are taken between video.start and session.stop.")
        return [self._error(refusal, event_id_of(message.interaction))]

    def _interact(self, message: SessionInteraction, now: float) -> list[Action]:
        read = read_interaction(message.interaction, self._terms)
        if isinstance(read, RefusedInteraction):
            return [self._error(read.failure, read.event_id)]
        # WEIR-177: nothing was passed on, so the same id may come again.
        if self._ledger.unanswered >= self._limits.pending_interactions:
            return [self._error(too_many(self._limits), event_id_of(message.interaction))]
        self._ledger.ask(read.event_id)
        return [SendControl(read)]

    def _pause(self, _event: object, now: float) -> list[Action]:
        return [SendControl(Pause())]

    def _resume(self, _event: object, now: float) -> list[Action]:
        self._clocks.released(WaitReason.PAUSE, now)
        return [SendControl(Resume())]

    def _report_playback(self, message: SessionPlayback, now: float) -> list[Action]:
        self._clocks.reported(now)
        if self._agreement is None or self._agreement.request.pace is Pace.FREE:
            return []
        return [SendControl(Playback(message.position_seconds))]

    def _stop_early(self, _event: object, now: float) -> list[Action]:
        self._stop_wanted = True
        return []

    def _stop(self, _event: object, now: float) -> list[Action]:
        self._clocks.stopped(now)
        self.state = State.STOPPING
        return [SendControl(Stop())]

    def _pong_early(self, _event: object, now: float) -> list[Action]:
        return [SendMessage(SessionPong())]

    def _pong(self, _event: object, now: float) -> list[Action]:
        return [SendMessage(SessionPong(self._terms.request_id))]

    # What the backend tells

    def _advance(self, event: GenerationUpdated, now: float) -> list[Action]:
        update = event.update
        if isinstance(update, Outcome):
            return self._complete(update)
        try:
            return self._tell(update, now)
        except LedgerError:
            return self._break()

    def _tell(self, update: GenerationUpdate, now: float) -> list[Action]:
        """Return what an update that ends nothing makes known. Raises LedgerError."""
        request_id = self._terms.request_id
        match update:
            case Chunk():
                return self._show(update, now)
            case Progress():
                self._clocks.progressed(now)
            case Waiting(WaitReason.CREDIT) if not any(self._undrained):
                self._clocks.progressed(now)  # its credit is on the way already
            case Waiting():
                self._clocks.waits(update.reason, now)
            case InteractionQueued():
                self._ledger.queued(update.event_id)
                return [SendMessage(InteractionQueuedMessage(request_id, update.event_id))]
            case InteractionFailed():
                self._ledger.failed(update.event_id)
                return [self._error(update.failure, update.event_id)]
            case InteractionRefused():
                self._ledger.refused(update.event_id)
                return [self._error(update.failure, update.event_id)]
            case Paused():
                self._clocks.waits(WaitReason.PAUSE, now)
                return [SendMessage(SessionPaused(request_id))]
            case Resumed():
                self._clocks.released(WaitReason.PAUSE, now)
                return [SendMessage(SessionResumed(request_id))]
            case VideoCompleted():
                pass  # its counts were checked; the outcome says the same to the client
            case Accepted() | Outcome():
                return self._break()
        return []

    def _show(self, chunk: Chunk, now: float) -> list[Action]:
        self._ledger.shown(chunk)
        self._clocks.progressed(now)
        self._payloads += 1
        self._undrained.append(chunk.generation_chunk_index is not None)
        return [chunk_message(chunk, self._terms.request_id)]

    def _give_credit(self, _event: object, now: float) -> list[Action]:
        if not self._undrained:
            raise LocalProtocolError("more chunks were written than sent")
        # WEIR-175: a trailer has cost none.
        if not self._undrained.popleft():
            return []
        self._clocks.released(WaitReason.CREDIT, now)
        return [SendControl(Credit(1))]

    def _complete(self, outcome: Outcome) -> list[Action]:
        if outcome.failure is not None:
            return self._fail(outcome.failure, superseded=outcome.superseded)
        actions = self._answer_rest()
        superseded, unfinished = self._ledger.close(outcome.superseded)
        actions.append(
            done_message(
                self._terms.request_id,
                chunks=self._payloads,
                stopped=outcome.stopped,
                superseded=superseded,
                unfinished=unfinished,
            )
        )
        self.state = State.CLOSED
        if self._stopped_by_drain:
            return [*actions, Close(close_code(SHUTTING_DOWN, admitted=True), "shutting_down")]
        return [*actions, Close(1000, "")]

    def _give_up(self, event: GenerationFailed, now: float) -> list[Action]:
        return self._fail(event.failure)

    # Everything else

    def _reject(self, event: FrameRejected, now: float) -> list[Action]:
        return [self._error(event.failure)]

    def _reject_first(self, event: FrameRejected, now: float) -> list[Action]:
        return self._fail(event.failure)

    def _learn(self, event: CapabilitiesChanged, now: float) -> list[Action]:
        self._capabilities = event.capabilities
        return []

    def _time_out_start(self, _event: object, now: float) -> list[Action]:
        if now < self._start_by:
            return []
        return self._fail(no_start(self._limits))

    def _time_out(self, event: object, now: float) -> list[Action]:
        match self._clocks.due(now):
            case Alarm.BACKEND:
                return self._abort_with(no_progress(self._limits))
            case Alarm.VIEWER:
                return self._abort_with(no_report(self._limits))
            case Alarm.SESSION:
                self._stopped_by_drain = self._draining
                if self.state is State.STARTING:
                    self._clocks.stopped(now)
                    return self._stop_early(event, now)
                return self._stop(event, now)
            case None:
                return []

    def _shut_down(self, event: ShutdownRequested, now: float) -> list[Action]:
        if self.state is State.UNSTARTED:
            return self._fail(SHUTTING_DOWN)
        if event.final or not self._admitted:
            return self._abort_with(SHUTTING_DOWN)
        # What is short enough ends by itself; the rest ends cleanly, with its trailer.
        self._draining = True
        self._clocks.stop_by(now + self._limits.drain_s)
        return []

    def _vanish(self, _event: object, now: float) -> list[Action]:
        begun = self.state is not State.UNSTARTED
        self.state = State.CLOSED
        return [AbortGeneration()] if begun else []

    def _ignore(self, _event: object, now: float) -> list[Action]:
        return []

    # How it ends

    def _break(self) -> list[Action]:
        """End a session whose backend has told what cannot be."""
        return self._abort_with(BROKEN)

    def _abort_with(self, cause: Failure) -> list[Action]:
        return [AbortGeneration(), *self._fail(cause)]

    def _fail(self, cause: Failure, superseded: tuple[str, ...] = ()) -> list[Action]:
        """End the session with an error; the generation, if there was one, has ended."""
        code = close_code(cause, admitted=self._admitted)
        self.state = State.CLOSED
        close = Close(code, cause.websocket_code)
        if not self._admitted:
            return [error_message(cause), close]
        actions = self._answer_rest()
        replaced, unfinished = self._ledger.close(superseded)
        error = terminal_message(cause, self._terms.request_id, replaced, unfinished)
        return [*actions, error, close]

    def _answer_rest(self) -> list[Action]:
        """Refuse what the backend has not answered."""
        return [self._error(NOT_TAKEN, event_id) for event_id in self._ledger.take_unanswered()]

    def _error(self, cause: Failure, event_id: str | None = None) -> SendMessage:
        request_id = self._terms.request_id if self._admitted else None
        return error_message(cause, request_id=request_id, event_id=event_id)


def _event_id(subject: object) -> str | None:
    return event_id_of(subject.interaction) if isinstance(subject, SessionInteraction) else None
