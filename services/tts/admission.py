"""Who may use the model, and when.

Owns: the slots, the bounded queue in front of them and the answer to a request that finds both
full. Does not own: threads (`services.tts.engine`), what a slot is used for. Enforces: WEIR-190 (a
slot is never lost and never held twice; a place that is given up is free at once), WEIR-191 (the
queue is bounded; who does not fit is refused with a delay), WEIR-192 (sessions take turns).

Used from the event loop only. Nothing here waits except `Ticket.wait`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from contracts.errors import Reason, WeirError, failure

_SMOOTHING = 0.2
"""Weight of the latest service time in the estimate; the last dozen or so decide."""


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Bounds of one replica. `retry_delay_*_ms` bound what a refused request is told to wait."""

    slots: int
    queue: int
    retry_delay_min_ms: int
    retry_delay_max_ms: int


class _State(Enum):
    WAITING = "waiting"
    HOLDING = "holding"
    GONE = "gone"


class Ticket:
    """One request's place. Waiting, then holding a slot, then gone; `release` ends it anywhere."""

    def __init__(self, admission: Admission, session_id: str, position: int) -> None:
        self._admission = admission
        self._granted = asyncio.Event()
        self.session_id = session_id
        self.position = position
        """Place in the queue from 1 when the ticket was made; 0 when a slot was free."""
        self.state = _State.WAITING
        self.held_since = 0.0

    @property
    def holding(self) -> bool:
        """True while this ticket holds a slot."""
        return self.state is _State.HOLDING

    async def wait(self) -> None:
        """Return when this ticket holds a slot."""
        await self._granted.wait()

    def release(self) -> None:
        """Give up the place or the slot. Any number of times, at any moment."""
        self._admission.leave(self)

    def grant(self, now: float) -> None:
        """Hand over a slot; for `Admission` alone."""
        self.state = _State.HOLDING
        self.held_since = now
        self._granted.set()


class Admission:
    """The slots of one replica. `clock` gives seconds and never goes back."""

    def __init__(self, limits: AdmissionLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._busy = 0
        # WEIR-192: one queue a session, the session whose turn it is in front.
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()
        self._queued = 0
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._service_s = 0.0

    @property
    def busy(self) -> int:
        """Slots in use."""
        return self._busy

    @property
    def queued(self) -> int:
        """Requests that wait for a slot."""
        return self._queued

    @property
    def slots(self) -> int:
        """Slots there are."""
        return self._limits.slots

    def admit(self, session_id: str) -> Ticket:
        """Take a slot or a place in the queue for `session_id`.

        Raises WeirError: SHUTTING_DOWN while draining, OVERLOADED when the queue is full.
        """
        if self._draining:
            raise WeirError(
                failure(
                    Reason.SHUTTING_DOWN,
                    "The replica is shutting down and takes no new segments.",
                    retry_after_ms=self._limits.retry_delay_min_ms,
                )
            )
        if self._busy < self._limits.slots:
            ticket = Ticket(self, session_id, 0)
            self._grant(ticket)
        elif self._queued < self._limits.queue:
            ticket = Ticket(self, session_id, self._position(session_id))
            self._waiting.setdefault(session_id, deque()).append(ticket)
            self._queued += 1
        else:
            # WEIR-191: refused at once, with a delay that follows how fast the replica is.
            raise WeirError(
                failure(
                    Reason.OVERLOADED,
                    "All synthesis slots and queue places of the replica are taken.",
                    retry_after_ms=self._retry_delay_ms(),
                )
            )
        self._empty.clear()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Free what `ticket` has; the next in turn gets its slot. Nothing when it is gone."""
        state, ticket.state = ticket.state, _State.GONE
        if state is _State.WAITING:
            queue = self._waiting[ticket.session_id]
            queue.remove(ticket)
            if not queue:
                del self._waiting[ticket.session_id]
            self._queued -= 1
        elif state is _State.HOLDING:
            self._learn(self._clock() - ticket.held_since)
            self._busy -= 1
            self._grant_next()
        if not self._busy and not self._queued:
            self._empty.set()

    def drain(self) -> None:
        """Refuse everything new from now on; what was accepted is still served."""
        self._draining = True

    async def empty(self) -> None:
        """Return when nothing is held and nothing waits."""
        await self._empty.wait()

    def _grant(self, ticket: Ticket) -> None:
        self._busy += 1
        ticket.grant(self._clock())

    def _grant_next(self) -> None:
        if not self._waiting:
            return
        session_id, queue = self._waiting.popitem(last=False)
        ticket = queue.popleft()
        if queue:
            self._waiting[session_id] = queue  # WEIR-192: its next turn comes after the others'.
        self._queued -= 1
        self._grant(ticket)

    def _position(self, session_id: str) -> int:
        """Place in the queue, from 1, that the next ticket of this session gets."""
        round_index = len(self._waiting.get(session_id, ()))
        ahead, passed = round_index, False
        for other, queue in self._waiting.items():
            if other == session_id:
                passed = True
            else:
                # Who stands in front has one turn more than who comes behind.
                ahead += min(len(queue), round_index if passed else round_index + 1)
        return ahead + 1

    def _learn(self, seconds: float) -> None:
        if self._service_s:
            self._service_s += _SMOOTHING * (seconds - self._service_s)
        else:
            self._service_s = seconds

    def _retry_delay_ms(self) -> int:
        # When a place is free again: one service time shared by all slots.
        estimate = 1000 * self._service_s / self._limits.slots
        return round(
            min(max(estimate, self._limits.retry_delay_min_ms), self._limits.retry_delay_max_ms)
        )
