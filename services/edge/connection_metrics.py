"""What every endpoint measures about its connections.

Owns: the families that are the same for speech and video but for their names. Does not own: what
one endpoint measures beside them (its `metrics`), when something is counted (its driver). Enforces:
WEIR-072 (bounded label sets).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from contracts.errors import Reason
from services.runtime.metrics import Metrics


class ConnectionMetrics:
    """Counts of all connections to one endpoint of one process."""

    def __init__(self, metrics: Metrics, endpoint: str) -> None:
        self._sessions = metrics.gauge(
            f"{endpoint}_sessions", f"Connections to the {endpoint} endpoint."
        )
        self._rejected = metrics.counter(
            f"{endpoint}_frames_rejected",
            "Frames that were not valid messages.",
            {"reason": [reason.value.lower() for reason in Reason]},
        )
        self._refused = metrics.counter(
            f"{endpoint}_sessions_refused", "Connections refused because the edge was full."
        )
        self._stalled = metrics.counter(
            f"{endpoint}_peers_stalled", "Peers removed because they had stopped reading."
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

    def frame_rejected(self, reason: Reason) -> None:
        """Count a frame that was not a valid message."""
        self._rejected.of(reason=reason.value.lower()).inc()

    def session_refused(self) -> None:
        """Count a connection that was not admitted."""
        self._refused.of().inc()

    def stalled(self) -> None:
        """Count a peer that was removed for not reading."""
        self._stalled.of().inc()
