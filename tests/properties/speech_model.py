"""What a speech session must do, in the plainest words: an oracle for the property test.

Owns: a second account of the protocol that shares no code with the session. It names the actions it
expects, in order, as `kinds` of the session fixture names them. Does not own: the content of
messages (the test's laws check it), where text is cut (`StopFrontend` cuts after every full stop).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from services.edge.text.frontend import Segment, SegmentReason

UTTERANCE, PENDING, FILE = 24, 6, 3
CONFIG_WINDOW, IDLE_WINDOW = 10.0, 30.0

ERROR = ["error"]
REFUSED = ["error", "close 1008"]
GOODBYE = ["error", "close 1012"]


class StopFrontend:
    """A frontend with one rule: a full stop ends a segment at once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = ""
        self._start = 0

    def feed(self, text: str) -> list[Segment]:
        *whole, rest = (self._open + text).split(".")
        if len(rest) > self._limit:
            raise ValueError("too much is pending")
        self._open = rest
        return [self._cut(piece + ".", SegmentReason.TERMINATOR) for piece in whole]

    def finish(self) -> list[Segment]:
        rest = self._open
        return [self._cut(rest, SegmentReason.END_OF_INPUT)] if rest else []

    def _cut(self, text: str, reason: SegmentReason) -> Segment:
        start, self._start = self._start, self._start + len(text)
        return Segment(text, start, self._start, reason)


@dataclass
class Flight:
    """The segment in flight. `step` walks: submitted, accepted, complete."""

    name: str
    step: str = "submitted"
    size: int = 0


@dataclass
class Open:
    """The open utterance. `queue` holds what has to be spoken, by segment index."""

    index: int
    text: str = ""
    cut: int = 0
    segments: int = 0
    queue: list[int] = field(default_factory=list)
    ended: bool = False
    failed: bool = False


@dataclass
class Model:
    """Expects. Every method takes one event and returns the kinds of the actions it causes."""

    now: float = 0.0
    reachable: bool = True
    mode: str = ""
    """Empty before the first configuration, then file, stream or words."""
    unheld: bool = False
    """A configuration came while no replica was reachable, so what follows is no fault."""
    over: bool = False
    ending: bool = False
    window: float = 0.0
    next_index: int = 0
    utterance: Open | None = None
    flight: Flight | None = None

    @property
    def state(self) -> str:
        if self.over:
            return "closed"
        if not self.mode:
            return "unconfigured"
        if self.utterance is None:
            return "ready"
        if self.utterance.ended:
            return "finishing"
        return "failed" if self.utterance.failed else "receiving"

    @property
    def busy(self) -> bool:
        return self.flight is not None or bool(self.utterance and self.utterance.queue)

    @property
    def deadline(self) -> float | None:
        if self.over or self.busy:
            return None
        return self.window + (IDLE_WINDOW if self.mode else CONFIG_WINDOW)

    def client(self, name: str, text: str = "", mode: str = "") -> list[str]:
        """A message; `mode` of a configuration is empty when it cannot be agreed on."""
        if self.over:
            return []
        if name == "session.close":
            return self._end(["close 1000"])
        if not self.mode and name != "session.config":
            if self.unheld:
                return ["session.pong"] if name == "session.ping" else ERROR
            return self._end(REFUSED)
        was_busy = self.busy
        handler = getattr(self, "_" + name.replace(".", "_"))
        return self._after(was_busy, handler(text, mode))

    def rejected(self) -> list[str]:
        if self.over:
            return []
        return ERROR if self.mode else self._end(REFUSED)

    def update(self, name: str, size: int = 0) -> list[str]:
        """An update of the segment in flight; anything else causes nothing."""
        if self.flight is None:
            return []
        return self._after(True, self._update(self.flight, name, size))

    def timer(self) -> list[str]:
        if self.deadline is None or self.now < self.deadline:
            return []
        return self._end(REFUSED)

    def vanished(self) -> list[str]:
        return [] if self.over else self._end([])

    def shut_down(self, final: bool) -> list[str]:
        if self.over:
            return []
        self.ending = True
        return self._end(GOODBYE) if final or self.utterance is None else []

    # One method for each message

    def _session_config(self, _: str, mode: str) -> list[str]:
        if self.utterance is not None:
            return ERROR
        if not self.reachable:
            self.unheld, self.window = True, self.now
            return ERROR
        if not mode:
            return ERROR if self.mode else self._end(REFUSED)
        self.mode, self.window = mode, self.now
        return []

    def _input_text(self, text: str, _: str) -> list[str]:
        if not text:
            return []
        utterance = self.utterance = self.utterance or Open(self.next_index)
        if utterance.ended or utterance.failed:
            return ERROR
        whole = utterance.text + text
        pending = whole[whole.rfind(".") + 1 :]
        if len(whole) > UTTERANCE or len(pending) > PENDING:
            utterance.failed = True
            utterance.queue = []
            return ERROR
        self.window = self.now
        utterance.text = whole
        while (stop := whole.find(".", utterance.cut)) >= 0:
            self._cut(utterance, stop + 1)
        return self._next()

    def _input_done(self, *_: str) -> list[str]:
        utterance = self.utterance
        if utterance is None:
            self.next_index += 1
            self.window = self.now
            return ["session.done"]
        if utterance.ended:
            return ERROR
        self.window = self.now
        utterance.ended = True
        if not utterance.failed:
            self._cut(utterance, len(utterance.text))
        return self._next() + self._settle()

    def _input_cancel(self, *_: str) -> list[str]:
        if self.utterance is None:
            return ["input.cancelled"]
        aborts = self._abort()
        self._leave()
        return [*aborts, "input.cancelled"]

    def _session_ping(self, *_: str) -> list[str]:
        if self.utterance is None:
            self.window = self.now
        return ["session.pong"]

    def _input_commit(self, *_: str) -> list[str]:
        return ERROR

    def _input_explain(self, *_: str) -> list[str]:
        return ERROR

    # The segment in flight

    def _update(self, flight: Flight, name: str, size: int) -> list[str]:
        if name == "accepted":
            flight.step = "accepted"
            return ["audio.start"]
        if name == "chunk":
            flight.size += size
            if self.mode == "file":
                return [*self._abort(), *self._fail()] if flight.size > FILE else []
            return ["audio.chunk" if self.mode == "words" else "audio"]
        if name == "complete":
            flight.step = "complete"
            return ["audio"] if self.mode == "file" and flight.size else []
        if name == "failed":
            return self._fail()
        if name == "outcome":
            self.flight = None
            last = ["audio.chunk"] if self.mode == "words" else []
            return [*last, "audio.done", *self._next(), *self._settle()]
        return []

    def _fail(self) -> list[str]:
        assert self.flight is not None
        assert self.utterance is not None
        started = ["audio.done"] if self.flight.step != "submitted" else []
        self.flight = None
        self.utterance.failed = True
        self.utterance.queue = []
        return [*ERROR, *started, *self._settle()]

    # The utterance

    def _cut(self, utterance: Open, end: int) -> None:
        piece = utterance.text[utterance.cut : end]
        if not piece:
            return
        if not piece.isspace():
            utterance.queue.append(utterance.segments)
        utterance.segments += 1
        utterance.cut = end

    def _next(self) -> list[str]:
        utterance = self.utterance
        if self.flight is not None or utterance is None or not utterance.queue:
            return []
        self.flight = Flight(f"s.{utterance.index}.{utterance.queue.pop(0)}")
        return [f"start {self.flight.name}"]

    def _settle(self) -> list[str]:
        if self.utterance is None or not self.utterance.ended or self.busy:
            return []
        self._leave()
        return ["session.done"]

    def _leave(self) -> None:
        self.next_index += 1
        self.utterance = self.flight = None

    def _abort(self) -> list[str]:
        return [] if self.flight is None else [f"abort {self.flight.name}"]

    # The session

    def _after(self, was_busy: bool, caused: list[str]) -> list[str]:
        if was_busy and not self.busy:
            self.window = self.now
        if self.ending and not self.over and self.utterance is None:
            return caused + self._end(GOODBYE)
        return caused

    def _end(self, last: list[str]) -> list[str]:
        aborts = self._abort()
        self.over = True
        self.utterance = self.flight = None
        return aborts + last
