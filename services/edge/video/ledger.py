"""What the client has been told about each of its interactions.

Owns: which interactions wait for an answer, which are queued and have not ended, and that the
service tells of each end once. Does not own: idempotency and the timeline (the video service), the
messages (`delivery`). Enforces: WEIR-166 (every interaction is answered once, queued or refused),
WEIR-167 (every queued id ends exactly once: completed, superseded, failed or unfinished).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from contracts.generation import Chunk


class LedgerError(ValueError):
    """The service told something about an interaction that cannot be."""


class InteractionLedger:
    """The interactions of one session. The service bounds how many ids it records (WEIR-147)."""

    __slots__ = ("_asked", "_ended", "_open")

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._open: dict[str, None] = {}
        self._ended: set[str] = set()

    @property
    def unanswered(self) -> int:
        """Count of interactions that were passed on and have no answer yet."""
        return self._asked.total()

    def ask(self, event_id: str) -> None:
        """Note that an interaction was passed on."""
        self._asked[event_id] += 1

    def queued(self, event_id: str) -> None:
        """Note that one was queued; a retry of an id changes nothing else."""
        self._answered(event_id)
        if event_id not in self._ended:
            self._open[event_id] = None

    def refused(self, event_id: str) -> None:
        """Note that one was refused, which leaves an earlier one of that id alone."""
        self._answered(event_id)

    def failed(self, event_id: str) -> None:
        """Note that a queued one failed; a retry is told the same again."""
        if event_id in self._open:
            self._end([event_id])
        elif event_id not in self._ended:
            raise LedgerError("an interaction failed that was not queued")

    def shown(self, chunk: Chunk) -> None:
        """Note what a chunk tells. Raises LedgerError for an id that is not queued or has ended."""
        for event_id in (*chunk.started, *chunk.active):
            if event_id not in self._open:
                raise LedgerError("a chunk names an interaction that is not queued")
        # WEIR-167: what has ended is named no more.
        self._end(chunk.completed)
        self._end(chunk.superseded)

    def close(self, superseded: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """End everything; return the superseded and the unfinished ids in the order of queueing.

        `superseded` are those of the service's outcome; every other open id is unfinished.
        """
        told = set(superseded)
        replaced = tuple(event_id for event_id in self._open if event_id in told)
        # WEIR-167: whatever the outcome says or fails to say, each id is in one of the two.
        unfinished = tuple(event_id for event_id in self._open if event_id not in told)
        self._end((*replaced, *unfinished))
        return replaced, unfinished

    def take_unanswered(self) -> list[str]:
        """Return the id of every interaction without an answer, once for each; then none is."""
        left = list(self._asked.elements())
        self._asked.clear()
        return left

    def _answered(self, event_id: str) -> None:
        # WEIR-166
        if event_id not in self._asked:
            raise LedgerError("an interaction was answered that was not asked")
        self._asked[event_id] -= 1
        if self._asked[event_id] == 0:
            del self._asked[event_id]

    def _end(self, event_ids: Iterable[str]) -> None:
        for event_id in event_ids:
            if event_id not in self._open:
                raise LedgerError("an interaction ended that was not queued, or ended twice")
            del self._open[event_id]
            self._ended.add(event_id)
