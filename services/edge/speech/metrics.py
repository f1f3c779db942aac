"""What the speech endpoint measures.

Owns: the families and their label values. Does not own: when something is counted (`driver`), how
it is read (`services.runtime.admin`). Enforces: WEIR-072 (bounded label sets).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from contracts.errors import Reason
from services.runtime.metrics import Metrics

_FIRST_AUDIO_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
_OUTCOMES = ("spoken", "failed", "cancelled")


class SpeechMetrics:
    """Counts of all speech sessions of one process."""

    def __init__(self, metrics: Metrics) -> None:
        self._sessions = metrics.gauge("speech_sessions", "Connections to the speech endpoint.")
        self._segments = metrics.counter(
            "speech_segments", "Segments that were handed to synthesis.", {"outcome": _OUTCOMES}
        )
        self._first_audio = metrics.histogram(
            "speech_first_audio_seconds",
            "Time from handing a segment to synthesis to its first audio byte.",
            _FIRST_AUDIO_BUCKETS,
        )
        self._rejected = metrics.counter(
            "speech_frames_rejected",
            "Frames that were not valid messages.",
            {"reason": [reason.value.lower() for reason in Reason]},
        )
        self._refused = metrics.counter(
            "speech_sessions_refused", "Connections refused because the edge was full."
        )
        self._stalled = metrics.counter(
            "speech_peers_stalled", "Peers removed because they had stopped reading."
        )

    @contextmanager
    def session(self) -> Iterator[None]:
        """Count a session for the length of the scope."""
        gauge = self._sessions.of()
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def segment_ended(self, outcome: str) -> None:
        """Count a segment: spoken, failed or cancelled."""
        self._segments.of(outcome=outcome).inc()

    def first_audio(self, seconds: float) -> None:
        """Note the delay of a segment's first audio byte."""
        self._first_audio.of().observe(seconds)

    def frame_rejected(self, reason: Reason) -> None:
        """Count a frame that was not a valid message."""
        self._rejected.of(reason=reason.value.lower()).inc()

    def session_refused(self) -> None:
        """Count a connection that was not admitted."""
        self._refused.of().inc()

    def stalled(self) -> None:
        """Count a peer that was removed for not reading."""
        self._stalled.of().inc()
