"""What the video endpoint measures.

Owns: the families and their label values. Does not own: those that every endpoint has
(`services.edge.connection_metrics`), when something is counted (`driver`), how it is read
(`services.runtime.admin`). Enforces: WEIR-072 (bounded label sets).
"""

from __future__ import annotations

from services.edge.connection_metrics import ConnectionMetrics
from services.runtime.metrics import Metrics

_FIRST_CHUNK_BUCKETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2)
_OUTCOMES = ("completed", "stopped", "failed", "refused", "cancelled")
_KINDS = ("queued", "failed", "refused")


class VideoMetrics:
    """Counts of all video sessions of one process. `connections` are those of any endpoint."""

    def __init__(self, metrics: Metrics) -> None:
        self.connections = ConnectionMetrics(metrics, "video")
        self._generations = metrics.counter(
            "video_generations", "Generations that were asked for.", {"outcome": _OUTCOMES}
        )
        self._first_chunk = metrics.histogram(
            "video_first_chunk_seconds",
            "Time from asking for a generation to its first payload.",
            _FIRST_CHUNK_BUCKETS,
        )
        self._chunks = metrics.counter("video_chunks", "Payloads that were sent to clients.")
        self._bytes = metrics.counter("video_bytes", "Bytes of the payloads sent to clients.")
        self._interactions = metrics.counter(
            "video_interactions", "Answers to interactions.", {"outcome": _KINDS}
        )

    def generation_ended(self, outcome: str) -> None:
        """Count a generation: completed, stopped, failed, refused or cancelled."""
        self._generations.of(outcome=outcome).inc()

    def first_chunk(self, seconds: float) -> None:
        """Note the delay of a generation's first payload."""
        self._first_chunk.of().observe(seconds)

    def chunk_sent(self, size: int) -> None:
        """Count a payload that the socket has taken."""
        self._chunks.of().inc()
        self._bytes.of().inc(size)

    def interaction_answered(self, outcome: str) -> None:
        """Count an answer to an interaction: queued, failed or refused."""
        self._interactions.of(outcome=outcome).inc()
