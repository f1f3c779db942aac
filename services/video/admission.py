"""How many generations a replica serves at once.

Owns: the slots and the refusal of whoever finds none. Does not own: what a slot is used for.
Enforces: WEIR-228 (a slot is never lost and never held twice; beyond the last one a generation is
refused at once, with a delay).

Used from the event loop only.
"""

from __future__ import annotations

import asyncio

from contracts.errors import Reason, WeirError, failure


class Slot:
    """One generation's place. `release` it once or more."""

    def __init__(self, admission: Admission) -> None:
        self._admission: Admission | None = admission

    def release(self) -> None:
        """Give the place back. Any number of times."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.give_back()


class Admission:
    """The slots of one replica.

    A refused caller is told to wait `retry_delay_ms`: generations last minutes, so no estimate
    would tell more than that another replica is to be tried first.
    """

    def __init__(self, slots: int, retry_delay_ms: int) -> None:
        self.slots = slots
        """Slots there are."""
        self.busy = 0
        """Slots in use."""
        self._retry_delay_ms = retry_delay_ms
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    def take(self) -> Slot:
        """Take a slot. Raises WeirError: SHUTTING_DOWN while draining, OVERLOADED without one."""
        if self._draining:
            raise WeirError(
                failure(
                    Reason.SHUTTING_DOWN,
                    "The replica is shutting down and takes no new generations.",
                    retry_after_ms=self._retry_delay_ms,
                )
            )
        if self.busy >= self.slots:
            # WEIR-228: nobody waits here, since another replica may be free now.
            raise WeirError(
                failure(
                    Reason.OVERLOADED,
                    "All generation slots of the replica are taken.",
                    retry_after_ms=self._retry_delay_ms,
                )
            )
        self.busy += 1
        self._empty.clear()
        return Slot(self)

    def give_back(self) -> None:
        """Free one slot; for `Slot` alone."""
        self.busy -= 1
        if not self.busy:
            self._empty.set()

    def drain(self) -> None:
        """Refuse everything new from now on."""
        self._draining = True

    async def empty(self) -> None:
        """Return when no slot is held."""
        await self._empty.wait()
