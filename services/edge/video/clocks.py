"""The clocks of a video session that is under way.

Owns: which deadlines there are, when each stands still, and which one has come. Does not own: what
then happens (`core`), time itself (passed in, in seconds). Enforces: WEIR-169 (a generation that
makes no progress is given up, unless it waits for its viewer; a viewer that keeps it waiting with
no report is given up after a longer while; no session outlasts its cap).
"""

from __future__ import annotations

from enum import Enum

from contracts.generation import WaitReason
from services.edge.video.terms import VideoLimits

_FOR_THE_VIEWER = frozenset({WaitReason.PAUSE, WaitReason.PLAYBACK})


class Alarm(Enum):
    """What has taken too long."""

    BACKEND = "backend"
    VIEWER = "viewer"
    SESSION = "session"


class GenerationClocks:
    """The clocks from the moment a generation was asked for; `now` is monotonic, in seconds."""

    __slots__ = ("_limits", "_progress_at", "_report_at", "_stop_at", "_waiting")

    def __init__(self, limits: VideoLimits, now: float) -> None:
        self._limits = limits
        self._progress_at = now
        self._report_at = now
        self._stop_at: float | None = now + limits.session_s
        self._waiting: WaitReason | None = None

    @property
    def deadline(self) -> float:
        """The time of the next alarm; infinite when none can come."""
        return min(self._times().values())

    def due(self, now: float) -> Alarm | None:
        """Return the alarm whose time has come, the earliest one; None when none has."""
        times = self._times()
        alarm = min(times, key=lambda name: times[name])
        return alarm if now >= times[alarm] else None

    def progressed(self, now: float) -> None:
        """The backend has shown that it works."""
        self._waiting = None
        self._progress_at = now

    def waits(self, reason: WaitReason, now: float) -> None:
        """The backend has said what it waits for."""
        if reason in _FOR_THE_VIEWER and self._waiting not in _FOR_THE_VIEWER:
            self._report_at = now
        self._waiting = reason

    def released(self, reason: WaitReason, now: float) -> None:
        """What the backend may have waited for has been given; it has to go on now."""
        if self._waiting is reason:
            self.progressed(now)

    def reported(self, now: float) -> None:
        """The viewer has said how far it is."""
        self._report_at = now

    def stop_by(self, when: float) -> None:
        """Let the session end no later than this."""
        if self._stop_at is not None:
            self._stop_at = min(self._stop_at, when)

    def stopped(self, now: float) -> None:
        """The generation was asked to end: it waits for nobody any more."""
        self._stop_at = None
        if self._waiting is not WaitReason.CREDIT:
            self.progressed(now)

    def _times(self) -> dict[Alarm, float]:
        # WEIR-169: a generation that waits for its viewer makes no progress, and is not stalled.
        never = float("inf")
        limits, waiting = self._limits, self._waiting
        return {
            Alarm.BACKEND: never if waiting else self._progress_at + limits.stall_timeout_s,
            Alarm.VIEWER: (
                self._report_at + limits.gated_timeout_s if waiting in _FOR_THE_VIEWER else never
            ),
            Alarm.SESSION: never if self._stop_at is None else self._stop_at,
        }
