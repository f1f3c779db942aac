"""Which interactions a generation has seen: the idempotency of `event_id`.

Owns: the recorded payload of every id, its failure if it had one, the caps. Does not own: what an
interaction does (`timeline`), its syntax (the edge), the queue in front of the encoder. Enforces:
WEIR-146 (same id and payload: acknowledged again, applied once; other payload: conflict), WEIR-147
(ids are capped, in number and in bytes, and never evicted).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from contracts.errors import Failure, Reason, failure

MAX_EVENT_IDS = 10_000
MAX_EVENT_ID_BYTES = 1024 * 1024
"""All ids of a generation may have to be named in one message, which has a limit."""


class Admission(Enum):
    """What an offered interaction turned out to be."""

    NEW = "new"
    REPEATED = "repeated"


@dataclass(slots=True)
class _Entry:
    payload: Hashable
    failure: Failure | None = None


CONFLICT = failure(Reason.EVENT_ID_CONFLICT, "The event_id was used before with another payload.")


class InteractionLedger:
    """Remembers every recorded interaction of one generation."""

    def __init__(
        self,
        max_event_ids: int = MAX_EVENT_IDS,
        max_event_id_bytes: int = MAX_EVENT_ID_BYTES,
    ) -> None:
        if max_event_ids < 1 or max_event_id_bytes < 1:
            raise ValueError("a ledger holds at least one id")
        self._max_event_ids = max_event_ids
        self._max_event_id_bytes = max_event_id_bytes
        self._event_id_bytes = 0
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def examine(self, event_id: str, payload: Hashable) -> Admission | Failure:
        """Say what an interaction is, without recording it.

        `payload` is compared as it came, before defaults. A failure here changes nothing, so the
        same id may be tried again.
        """
        entry = self._entries.get(event_id)
        if entry is not None:
            return Admission.REPEATED if entry.payload == payload else CONFLICT
        if len(self._entries) >= self._max_event_ids:
            # WEIR-147: forgetting an id would let its retry apply a second time.
            return failure(
                Reason.SESSION_STATE,
                f"The generation has recorded its limit of {self._max_event_ids} event ids.",
            )
        if self._event_id_bytes + _size(event_id) > self._max_event_id_bytes:
            return failure(
                Reason.SESSION_STATE,
                "The generation has recorded its limit of "
                f"{self._max_event_id_bytes} bytes of event ids.",
            )
        return Admission.NEW

    def record(self, event_id: str, payload: Hashable) -> None:
        """Remember a new interaction. Raises ValueError when the id is recorded already."""
        if event_id in self._entries:
            raise ValueError("an event id is recorded once")
        self._entries[event_id] = _Entry(payload)
        self._event_id_bytes += _size(event_id)

    def fail(self, event_id: str, cause: Failure) -> None:
        """Remember that a recorded interaction failed; its retry is told the same."""
        self._entries[event_id].failure = cause

    def failure_of(self, event_id: str) -> Failure | None:
        """Return why a recorded interaction failed, None when it did not."""
        entry = self._entries.get(event_id)
        return None if entry is None else entry.failure


def _size(event_id: str) -> int:
    """Return how many bytes an id takes in a message."""
    return len(event_id.encode())
