"""The speech session: a pure state machine, without sockets, threads or a clock.

Owns: the idle clock and what each event makes happen. Does not own: which events are taken in which
state (`transitions`), I/O and time (`driver`), text (`utterance`), the messages of a segment
(`delivery`), what a configuration means (`negotiation`). Enforces: IO-INV-100 (identity),
IO-INV-101 (`session.done` once per utterance), IO-INV-102 (one segment at a time, in source order),
IO-INV-103 (text after the end is refused; failure stops later segments; the idle budget), WEIR-151
(nothing of a cancelled utterance follows its answer), WEIR-152 (a peer's fault never raises).
"""

from __future__ import annotations

from contracts.capabilities import SpeechCapabilities
from contracts.errors import Failure, Reason, failure
from contracts.identity import SegmentIdentity
from contracts.modality import Accepted, Outcome, TextSpan
from contracts.speech import SegmentRequest
from services.edge.admission import SHUTTING_DOWN
from services.edge.session_events import check_move, transition_of
from services.edge.speech.delivery import DeliveryTerms, FileTooLargeError, SegmentDelivery
from services.edge.speech.events import (
    AbortSegment,
    Action,
    CapabilitiesChanged,
    Close,
    Event,
    FrameReceived,
    FrameRejected,
    LocalProtocolError,
    SegmentFailed,
    SegmentUpdated,
    SendMessage,
    ShutdownRequested,
    StartSegment,
)
from services.edge.speech.messages import (
    InputCancelled,
    InputDone,
    InputText,
    SessionConfig,
    SessionDone,
    SessionPing,
    SessionPong,
)
from services.edge.speech.negotiation import Agreement, negotiate
from services.edge.speech.refusals import error_message, wrong_state
from services.edge.speech.terms import SpeechTerms
from services.edge.speech.transitions import TRANSITIONS, State
from services.edge.speech.utterance import TextRefusedError, Utterance
from services.edge.text.frontend import Segment

MAX_PENDING_WARNINGS = 16
"""Warnings kept for the next `audio.start`; more are not worth keeping."""

UNREACHABLE = failure(
    Reason.BACKEND_UNAVAILABLE,
    "No speech service can be reached; send session.config again.",
    retry_after_ms=1000,
)


class SpeechSession:
    """One connection to the speech endpoint.

    `receive` takes one event and the monotonic time in seconds, and returns what is to be done, in
    order. `deadline` says when to call it with `ClockReached`; None means never.
    """

    def __init__(self, terms: SpeechTerms, now: float) -> None:
        self.state = State.UNCONFIGURED
        self._terms = terms
        self._limits = terms.limits
        self._capabilities: SpeechCapabilities | None = None
        self._agreement: Agreement | None = None
        self._utterance: Utterance | None = None
        self._delivery: SegmentDelivery | None = None
        self._next_utterance = 0
        self._warnings: list[str] = []
        self._window_start = now
        self._shutting_down = False
        self._unreachable = False

    @property
    def deadline(self) -> float | None:
        """Monotonic time in seconds at which the session gives up; None while it may not."""
        if self.state is State.CLOSED or self._busy:
            return None
        if self.state is State.UNCONFIGURED:
            return self._window_start + self._limits.config_timeout_s
        return self._window_start + self._limits.idle_timeout_s

    @property
    def speaking(self) -> bool:
        """True while an utterance is open."""
        return self._utterance is not None

    def receive(self, event: Event, now: float) -> list[Action]:
        """Take one event in; return the actions it causes, in order.

        Raises LocalProtocolError when the driver breaks the rules, never for what a peer does.
        """
        subject = event.message if isinstance(event, FrameReceived) else event
        transition = transition_of(TRANSITIONS, self.state, subject)
        was_busy, before = self._busy, self.state
        actions: list[Action] = getattr(self, transition.handler)(subject, now)
        if isinstance(event, FrameReceived):
            self._note(event.warnings)  # after the handler: a new configuration clears older ones
        if was_busy and not self._busy:
            # IO-INV-103: when all committed work has settled a full idle window begins.
            self._window_start = now
        if self._shutting_down and self.state is State.READY:
            actions += self._close_with(SHUTTING_DOWN)
        check_move(transition, before, self.state)
        return actions

    @property
    def _busy(self) -> bool:
        """True while a committed segment is staged, queued or in flight: the idle clock stands."""
        return self._delivery is not None or (
            self._utterance is not None and self._utterance.has_work
        )

    def _configure(self, config: SessionConfig, now: float) -> list[Action]:
        if self._capabilities is None:
            self._unreachable = True
            self._window_start = now
            return [error_message(UNREACHABLE)]
        agreement = negotiate(config, self._capabilities, self._terms.policy)
        if isinstance(agreement, Failure):
            if self.state is State.UNCONFIGURED:
                return self._close_with(agreement)
            return [error_message(agreement)]
        self._agreement = agreement
        self._warnings = []  # those of a configuration that no longer holds would mislead
        self._note(agreement.warnings)
        self._window_start = now
        self.state = State.READY
        return []

    def _refuse_config(self, _event: object, now: float) -> list[Action]:
        return [wrong_state("session.config is not accepted while an utterance is open.")]

    def _expect_config(self, _event: object, now: float) -> list[Action]:
        if self._unreachable:
            # The peer did begin with a configuration; it is not its fault that none holds yet.
            answer = SendMessage(SessionPong()) if isinstance(_event, SessionPing) else None
            return [answer or error_message(UNREACHABLE)]
        return self._close_with(
            failure(Reason.INVALID_MESSAGE, "The first message must be session.config.")
        )

    # Text

    def _open_utterance(self, message: InputText, now: float) -> list[Action]:
        if not message.text:
            return []
        agreement = self._require_agreement()
        frontend = self._terms.open_frontend(agreement, self._limits.pending_characters)
        self._utterance = Utterance(self._next_utterance, frontend, self._limits)
        self.state = State.RECEIVING
        return self._feed(message, now)

    def _feed(self, message: InputText, now: float) -> list[Action]:
        if not message.text:
            return []
        utterance = self._require_utterance()
        try:
            utterance.feed(message.text)
        except TextRefusedError as refusal:
            return self._fail_text(refusal.failure)
        self._window_start = now
        return self._start_next()

    def _end_input(self, _event: object, now: float) -> list[Action]:
        utterance = self._require_utterance()
        self.state = State.FINISHING
        self._window_start = now
        actions: list[Action] = []
        try:
            utterance.finish()
        except TextRefusedError as refusal:
            actions += self._fail_text(refusal.failure)
        return actions + self._start_next() + self._settle()

    def _end_failed_input(self, _event: object, now: float) -> list[Action]:
        self.state = State.FINISHING
        self._window_start = now
        return self._settle()

    def _end_nothing(self, _event: object, now: float) -> list[Action]:
        index = self._next_utterance
        self._next_utterance += 1
        self._window_start = now
        return [SendMessage(SessionDone(index, 0))]

    def _refuse_input(self, message: InputText | InputDone, now: float) -> list[Action]:
        if message == InputText(""):
            return []
        # IO-INV-103: a transport update after the end of input is refused.
        return [wrong_state("The utterance has ended; wait for session.done.")]

    def _refuse_failed_text(self, message: InputText, now: float) -> list[Action]:
        if not message.text:
            return []
        return [
            error_message(
                failure(
                    Reason.UTTERANCE_FAILED,
                    "The utterance has failed; its text is refused until input.done.",
                ),
                self._require_utterance().index,
            )
        ]

    def _fail_text(self, refusal: Failure) -> list[Action]:
        """Fail the utterance over its text: what is in flight is delivered, nothing else starts."""
        utterance = self._require_utterance()
        utterance.discard()
        if self.state is State.RECEIVING:
            self.state = State.FAILED
        return [error_message(refusal, utterance.index)]

    # Synthesis

    def _start_next(self) -> list[Action]:
        """Hand the next ready segment to synthesis when none is in flight."""
        utterance = self._utterance
        if utterance is None or self._delivery is not None:
            return []
        taken = utterance.take()
        if taken is None:
            return []
        index, segment = taken
        agreement = self._require_agreement()
        request = self._request(utterance.index, index, segment, agreement)
        delivery_terms = DeliveryTerms(agreement.stream_audio, agreement.options.word_times)
        self._delivery = SegmentDelivery(request, segment, utterance, delivery_terms, self._limits)
        return [StartSegment(request, agreement.retries_after_acceptance)]

    def _request(
        self, utterance_index: int, index: int, segment: Segment, agreement: Agreement
    ) -> SegmentRequest:
        session_id = self._terms.session_id
        # IO-INV-100: the request id names the segment and stays the same over its attempts.
        identity = SegmentIdentity(
            session_id, f"{session_id}.{utterance_index}.{index}", utterance_index, index
        )
        return SegmentRequest(
            identity,
            segment.text,
            agreement.output,
            agreement.voice,
            agreement.options,
            tuple(TextSpan(span.source_text, span.kind) for span in segment.spans),
        )

    def _advance(self, event: SegmentUpdated, now: float) -> list[Action]:
        delivery = self._delivery
        if delivery is None or delivery.request_id != event.request_id:
            return []  # WEIR-151: an answer to what was cancelled
        warnings = self._take_warnings() if isinstance(event.update, Accepted) else ()
        try:
            actions: list[Action] = [*delivery.advance(event.update, warnings)]
        except FileTooLargeError:
            too_large = failure(
                Reason.MESSAGE_TOO_LARGE,
                f"The audio file is larger than its limit of {self._limits.segment_file_bytes} "
                "bytes.",
            )
            return [AbortSegment(event.request_id), *self._fail_segment(too_large)]
        if isinstance(event.update, Outcome):
            self._delivery = None
            actions += self._start_next() + self._settle()
        return actions

    def _give_up(self, event: SegmentFailed, now: float) -> list[Action]:
        if self._delivery is None or self._delivery.request_id != event.request_id:
            return []
        return self._fail_segment(event.failure)

    def _fail_segment(self, cause: Failure) -> list[Action]:
        """Fail the utterance over a segment: later segments never start (IO-INV-103)."""
        delivery, utterance = self._delivery, self._require_utterance()
        assert delivery is not None
        actions: list[Action] = [*delivery.fail(cause)]
        self._delivery = None
        utterance.discard()
        if self.state is State.RECEIVING:
            self.state = State.FAILED
        return actions + self._settle()

    def _settle(self) -> list[Action]:
        """Close the utterance when its input has ended and nothing of it is left to do."""
        utterance = self._utterance
        if self.state is not State.FINISHING or utterance is None or self._busy:
            return []
        self._leave_utterance()
        return [SendMessage(SessionDone(utterance.index, utterance.sentence_count))]

    def _leave_utterance(self) -> None:
        self._next_utterance += 1
        self._utterance = None
        self._delivery = None
        self.state = State.READY

    def _abort(self) -> list[Action]:
        return [] if self._delivery is None else [AbortSegment(self._delivery.request_id)]

    def _cancel(self, _event: object, now: float) -> list[Action]:
        utterance = self._require_utterance()
        actions = self._abort()
        self._leave_utterance()
        answer = InputCancelled(
            utterance.index, utterance.submitted_until, round(utterance.sent_ms)
        )
        return [*actions, SendMessage(answer)]

    def _cancel_nothing(self, _event: object, now: float) -> list[Action]:
        return [SendMessage(InputCancelled(None, 0, 0))]

    def _pong_idle(self, _event: object, now: float) -> list[Action]:
        self._window_start = now
        return [SendMessage(SessionPong())]

    def _pong(self, _event: object, now: float) -> list[Action]:
        return [SendMessage(SessionPong())]

    def _not_offered(self, _event: object, now: float) -> list[Action]:
        return [
            error_message(
                failure(Reason.UNSUPPORTED_OPTION, "This message is not offered by the server.")
            )
        ]

    def _reject(self, event: FrameRejected, now: float) -> list[Action]:
        return [error_message(event.failure)]

    def _reject_first(self, event: FrameRejected, now: float) -> list[Action]:
        return self._close_with(event.failure)

    def _learn(self, event: CapabilitiesChanged, now: float) -> list[Action]:
        self._capabilities = event.capabilities
        return []

    def _close_politely(self, _event: object, now: float) -> list[Action]:
        return [*self._end(), Close(1000, "", discard=True)]

    def _vanish(self, _event: object, now: float) -> list[Action]:
        return self._end()

    def _shut_down(self, event: ShutdownRequested, now: float) -> list[Action]:
        self._shutting_down = True
        if event.final or self._utterance is None:
            return self._close_with(SHUTTING_DOWN)
        return []

    def _time_out(self, _event: object, now: float) -> list[Action]:
        if self.deadline is None or now < self.deadline:
            return []
        limits = self._limits
        if self.state is State.UNCONFIGURED:
            text = f"No session.config arrived within {limits.config_timeout_s:g} s."
        else:
            text = f"Nothing happened within the idle limit of {limits.idle_timeout_s:g} s."
        return self._close_with(failure(Reason.IDLE_TIMEOUT, text))

    def _ignore(self, _event: object, now: float) -> list[Action]:
        return []

    def _end(self) -> list[Action]:
        actions = self._abort()
        self._utterance = None
        self._delivery = None
        self.state = State.CLOSED
        return actions

    def _close_with(self, cause: Failure) -> list[Action]:
        code = cause.rule.close_code or 1008
        utterance = self._utterance
        error = error_message(cause, None if utterance is None else utterance.index)
        return [*self._end(), error, Close(code, cause.websocket_code)]

    def _note(self, warnings: tuple[str, ...]) -> None:
        room = MAX_PENDING_WARNINGS - len(self._warnings)
        self._warnings += [w for w in warnings if w not in self._warnings][: max(0, room)]

    def _take_warnings(self) -> tuple[str, ...]:
        taken, self._warnings = tuple(self._warnings), []
        return taken

    def _require_agreement(self) -> Agreement:
        if self._agreement is None:
            raise LocalProtocolError("no configuration is in force")
        return self._agreement

    def _require_utterance(self) -> Utterance:
        if self._utterance is None:
            raise LocalProtocolError("no utterance is open")
        return self._utterance
