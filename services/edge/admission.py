"""Why a connection is not served, whatever it was for.

Owns: the failures that the edge itself gives, before or above any session. Does not own: when they
hold (`services.edge.server`), their messages (each endpoint's `refusals`).
"""

from __future__ import annotations

from contracts.errors import Reason, failure

_RETRY_MS = 1000

FULL = failure(
    Reason.OVERLOADED,
    "The edge serves as many connections as it may; try again.",
    retry_after_ms=_RETRY_MS,
)

SHUTTING_DOWN = failure(
    Reason.SHUTTING_DOWN,
    "The server is shutting down; connect again.",
    retry_after_ms=_RETRY_MS,
)
