"""What a video session must do, in the plainest words: an oracle for the property test.

Owns: a second account of the protocol that shares no code with the session. It names the actions it
expects, in order, as `kinds` of the session fixture names them. Does not own: the content of
messages (the test's laws check it).
"""

from __future__ import annotations

from dataclasses import dataclass, field

START_S, STALL_S, GATED_S, SESSION_S, DRAIN_S = 10.0, 60.0, 120.0, 500.0, 30.0
PENDING = 3

STATE = ["session_state"]
NEVER = float("inf")


@dataclass
class Model:
    """Expects. Every method takes one event and returns the kinds of the actions it causes."""

    now: float = 0.0
    phase: str = "unstarted"
    reachable: bool = True
    realtime: bool = False
    stop_kept: bool = False
    drain: bool = False
    drained_stop: bool = False
    progress: float = 0.0
    report: float = 0.0
    cap: float = NEVER
    gate: str = ""
    undrained: list[bool] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.phase == "closed"

    @property
    def admitted(self) -> bool:
        return self.phase in ("running", "stopping")

    # The client

    def start(self, valid: bool) -> list[str]:
        if self.over:
            return []
        if self.phase != "unstarted":
            return STATE
        if not self.reachable:
            return self._end("backend_unavailable", 1013)
        if not valid:
            return self._end("unsupported_option", 1008)
        self.phase = "starting"
        self.progress = self.report = self.now
        self.cap = self.now + SESSION_S
        return ["start"]

    def interact(self, event_id: str, valid: bool) -> list[str]:
        if self.over:
            return []
        if self.phase != "running":
            return STATE
        if not valid:
            return ["invalid_message"]
        if len(self.asked) >= PENDING:
            return ["overloaded"]
        self.asked.append(event_id)
        return ["interaction"]

    def stop(self) -> list[str]:
        if self.phase == "unstarted":
            return STATE
        if self.phase == "starting":
            self.stop_kept = True
        return self._stop() if self.phase == "running" else []

    def pause(self) -> list[str]:
        if self.over:
            return []
        return ["pause"] if self.phase == "running" else STATE

    def resume(self) -> list[str]:
        if self.over:
            return []
        if self.phase != "running":
            return STATE
        self.release("pause")
        return ["resume"]

    def playback(self) -> list[str]:
        if self.phase in ("unstarted", "starting"):
            return STATE
        if self.phase != "running":
            return []
        self.report = self.now
        return ["playback"] if self.realtime else []

    def ping(self) -> list[str]:
        return [] if self.over else ["session.pong"]

    def bad_frame(self) -> list[str]:
        if self.over:
            return []
        if self.phase == "unstarted":
            return self._end("invalid_message", 1008)
        return ["invalid_message"]

    def vanish(self) -> list[str]:
        begun = self.phase not in ("unstarted", "closed")
        self.phase = "closed"
        return ["abort"] if begun else []

    # The backend

    def accept(self) -> list[str]:
        self.phase = "running"
        self._alive()
        return ["video.start", *(self._stop() if self.stop_kept else [])]

    def payload(self, media: bool) -> list[str]:
        self._alive()
        self.undrained.append(media)
        return ["video.chunk_metadata", "binary"]

    def drained(self) -> list[str]:
        if not self.undrained:
            return []
        media = self.undrained.pop(0)
        if self.over or not media:
            return []
        self.release("credit")
        return ["credit"]

    def sign_of_life(self) -> list[str]:
        self._alive()
        return []

    def waits(self, reason: str) -> list[str]:
        if reason == "credit" and not any(self.undrained):
            return self.sign_of_life()
        if reason != "credit" and self.gate in ("", "credit"):
            self.report = self.now
        self.gate = reason
        return []

    def answer(self, event_id: str, kind: str) -> list[str]:
        self.asked.remove(event_id)
        return [kind]

    def done(self) -> list[str]:
        rest = self._rest()
        self.phase = "closed"
        return [*rest, "session.done", "close 1012" if self.drained_stop else "close 1000"]

    def failed(self, reason: str, code: int) -> list[str]:
        return self._end(reason, code)

    # Time and the process

    def timer(self) -> list[str]:
        if self.phase == "unstarted":
            return self._end("idle_timeout", 1008) if self.now >= START_S else []
        if self.over:
            return []
        times = {
            "backend": NEVER if self.gate else self.progress + STALL_S,
            "viewer": self.report + GATED_S if self.gate in ("pause", "playback") else NEVER,
            "session": self.cap,
        }
        first = min(times, key=lambda name: times[name])
        if self.now < times[first]:
            return []
        if first == "backend":
            return ["abort", *self._end("deadline_exceeded", 1011)]
        if first == "viewer":
            return ["abort", *self._end("stall_timeout", 1008)]
        self.drained_stop = self.drain
        if self.phase == "starting":
            self.stop_kept, self.cap = True, NEVER
            self._alive()
            return []
        return self._stop()

    def shut_down(self, final: bool) -> list[str]:
        if self.over:
            return []
        if self.phase == "unstarted":
            return self._end("shutting_down", 1012)
        if final or self.phase == "starting":
            return ["abort", *self._end("shutting_down", 1012)]
        self.drain = True
        if self.cap != NEVER:
            self.cap = min(self.cap, self.now + DRAIN_S)
        return []

    def _stop(self) -> list[str]:
        self.phase, self.cap = "stopping", NEVER
        if self.gate != "credit":
            self._alive()
        return ["stop"]

    def _alive(self) -> None:
        self.gate, self.progress = "", self.now

    def release(self, gate: str) -> None:
        """What generation may have waited for has been given."""
        if self.gate == gate:
            self._alive()

    def _rest(self) -> list[str]:
        count, self.asked = len(self.asked), []
        return STATE * count

    def _end(self, reason: str, code: int) -> list[str]:
        rest = self._rest()
        self.phase = "closed"
        return [*rest, reason, f"close {code}"]
