"""What the speech endpoint measures.

Owns: the families and their label values. Does not own: those that every endpoint has
(`services.edge.connection_metrics`), when something is counted (`driver`), how it is read
(`services.runtime.admin`). Enforces: WEIR-072 (bounded label sets).
"""

from __future__ import annotations

from services.edge.connection_metrics import ConnectionMetrics
from services.runtime.metrics import Metrics

_FIRST_AUDIO_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
_OUTCOMES = ("spoken", "failed", "cancelled")


class SpeechMetrics:
    """Counts of all speech sessions of one process. `connections` are those of any endpoint."""

    def __init__(self, metrics: Metrics) -> None:
        self.connections = ConnectionMetrics(metrics, "speech")
        self._segments = metrics.counter(
            "speech_segments", "Segments that were handed to synthesis.", {"outcome": _OUTCOMES}
        )
        self._first_audio = metrics.histogram(
            "speech_first_audio_seconds",
            "Time from handing a segment to synthesis to its first audio byte.",
            _FIRST_AUDIO_BUCKETS,
        )

    def segment_ended(self, outcome: str) -> None:
        """Count a segment: spoken, failed or cancelled."""
        self._segments.of(outcome=outcome).inc()

    def first_audio(self, seconds: float) -> None:
        """Note the delay of a segment's first audio byte."""
        self._first_audio.of().observe(seconds)
