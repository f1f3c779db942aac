"""The interactions of one generation, from the request to the end of each.

Owns: who is answered what, the ids that wait for encoding, the timeline and its lock, and what is
left at the end. Does not own: encoding (`services.video.prompts`), the arithmetic (`timeline`),
idempotency (`ledger`). Enforces: WEIR-145 (an acknowledged id ends exactly once: completed or
superseded in a chunk that was sent, failed, or named in the outcome), WEIR-229 (a refused id is not
recorded; one that cannot be encoded leaves an older pending one alone).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import Generic

from contracts.errors import Failure, GrpcCode, Reason, failure
from contracts.generation import (
    Interaction,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
)
from services.video.adapters.base import Prompt
from services.video.ledger import Admission, InteractionLedger
from services.video.outbox import Outbox
from services.video.timeline import Boundary, Remainder, Target, Timeline

NO_UPDATES = failure(
    Reason.INTERACTION_FAILED,
    "The model does not support prompt updates.",
    code=GrpcCode.UNIMPLEMENTED,
)
UNKNOWN_FIELDS = failure(
    Reason.INTERACTION_FAILED,
    "The event has fields that the model does not read.",
    code=GrpcCode.UNIMPLEMENTED,
)
NOT_ENCODED = failure(Reason.INTERACTION_FAILED, "The model could not read the prompt.")
ENDING = failure(Reason.SESSION_STATE, "The generation is ending and takes no interactions.")


@dataclass(frozen=True, slots=True)
class InteractionRules:
    """What a model can do with interactions, and how many may wait for encoding."""

    prompt_updates: bool
    default_transition_chunks: int
    event_fields: frozenset[str]
    max_waiting: int
    retry_delay_ms: int


class Interactions(Generic[Prompt]):
    """All interactions of one generation. `admit` on the loop; the rest on the threads named."""

    def __init__(self, timeline: Timeline[Prompt], rules: InteractionRules, outbox: Outbox) -> None:
        self._timeline = timeline
        self._rules = rules
        self._outbox = outbox
        self._ledger = InteractionLedger()
        self._waiting: dict[str, None] = {}
        self._unsent: deque[Boundary[Prompt]] = deque()
        self._ending = False
        # Blending happens under the first lock and may take a while; the loop takes the second one
        # alone. Whoever takes both takes them in this order.
        self._timeline_lock = threading.Lock()
        self._lock = threading.Lock()

    def admit(self, interaction: Interaction) -> bool:
        """Loop: answer an interaction; True when it is queued and has to be encoded."""
        event_id, payload = interaction.event_id, _payload(interaction)
        with self._lock:
            found = self._refusal(event_id, payload)
            if isinstance(found, Failure):
                # WEIR-229: nothing was recorded, so it may come again.
                self._outbox.post(InteractionRefused(event_id, found))
                return False
            cause: Failure | None
            if found is Admission.REPEATED:
                cause = self._ledger.failure_of(event_id)
            else:
                self._ledger.record(event_id, payload)
                cause = self._unable(interaction)
            self._outbox.post(InteractionQueued(event_id))
            if cause is not None:
                self._ledger.fail(event_id, cause)
                self._outbox.post(InteractionFailed(event_id, cause))
            elif found is Admission.NEW:
                self._waiting[event_id] = None
                return True
            return False

    def take_no_more(self) -> None:
        """Refuse new interactions from now on; any thread."""
        with self._lock:
            self._ending = True

    def abandon(self) -> None:
        """Drop everything that still waits for encoding; nobody will be told. Any thread."""
        with self._lock:
            self._ending = True
            self._waiting.clear()

    def wanted(self, event_id: str) -> bool:
        """Prompt thread: whether an interaction still has to be encoded."""
        with self._lock:
            return event_id in self._waiting

    def encoded(self, interaction: Interaction, value: Prompt) -> None:
        """Prompt thread: make this prompt the pending target."""
        chunks = interaction.transition_chunks
        if chunks is None:
            chunks = self._rules.default_transition_chunks
        with self._timeline_lock:
            with self._lock:
                if not self._leaves_queue(interaction.event_id):
                    return
            self._timeline.submit(Target(interaction.event_id, value, chunks))

    def failed(self, event_id: str) -> None:
        """Prompt thread: the prompt cannot be read; what was pending before it stays."""
        with self._lock:
            if self._leaves_queue(event_id):
                self._ledger.fail(event_id, NOT_ENCODED)
                self._outbox.post(InteractionFailed(event_id, NOT_ENCODED))

    def next_boundary(self) -> Boundary[Prompt]:
        """Generation thread: go on to the next chunk and return what holds for it."""
        with self._timeline_lock:
            boundary = self._timeline.next_boundary()
            self._unsent.append(boundary)
            return boundary

    def sent(self) -> None:
        """Encoding thread: the chunk of the oldest boundary that was not sent is on its way."""
        with self._timeline_lock:
            self._unsent.popleft()

    def finish(self) -> Remainder:
        """Return what no chunk has told about; nothing changes any more after this."""
        with self._timeline_lock, self._lock:
            self._ending = True
            waiting, self._waiting = tuple(self._waiting), {}
            left = self._timeline.finish()
            unsent, self._unsent = tuple(self._unsent), deque()
            # WEIR-145: what only a chunk would have said that never was sent.
            return Remainder(
                superseded=(*chain.from_iterable(b.superseded for b in unsent), *left.superseded),
                unfinished=(
                    *chain.from_iterable(b.completed for b in unsent),
                    *left.unfinished,
                    *waiting,
                ),
            )

    def _refusal(self, event_id: str, payload: bytes) -> Admission | Failure:
        if self._ending:
            return ENDING
        found = self._ledger.examine(event_id, payload)
        if found is Admission.NEW and len(self._waiting) >= self._rules.max_waiting:
            return failure(
                Reason.OVERLOADED,
                f"{self._rules.max_waiting} interactions wait for encoding, which is the limit.",
                retry_after_ms=self._rules.retry_delay_ms,
            )
        return found

    def _unable(self, interaction: Interaction) -> Failure | None:
        if not self._rules.prompt_updates:
            return NO_UPDATES
        if not interaction.event_fields.keys() <= self._rules.event_fields:
            return UNKNOWN_FIELDS
        return None

    def _leaves_queue(self, event_id: str) -> bool:
        """Take an id out of the queue; False when the generation has ended meanwhile."""
        if event_id not in self._waiting:
            return False
        del self._waiting[event_id]
        return True


def _payload(interaction: Interaction) -> bytes:
    """Return what stands for the payload as it came: a digest, since thousands are kept."""
    text = json.dumps(
        [
            interaction.prompt,
            interaction.transition_chunks,
            dict(interaction.event_fields),
        ],
        sort_keys=True,
    )
    return hashlib.sha256(text.encode()).digest()
