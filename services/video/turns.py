"""One thread that serves many in turn.

Owns: the generation thread and the order in which generations get it. Does not own: what is done in
a turn. Enforces: WEIR-231 (generations take turns chunk by chunk; who has just had one comes last).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from services.runtime.logging import get_logger

_log = get_logger(__name__)


class Member(Protocol):
    """Who takes turns. Both are called with `Turns.changed` held."""

    def claim(self, now: float) -> Callable[[], None] | None:
        """Return what to do in this turn, None when there is nothing to do now."""
        ...

    def wakes_at(self, now: float) -> float | None:
        """Return when time alone gives it something to do; None when time alone never does."""
        ...


class Turns:
    """The thread. `changed` guards the members' own fields; notify it after changing them."""

    def __init__(self, clock: Callable[[], float], name: str) -> None:
        self.changed = threading.Condition()
        self._clock = clock
        self._members: deque[Member] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def join(self, member: Member) -> None:
        """Add a member; it has the next turn."""
        with self.changed:
            self._members.appendleft(member)
            self.changed.notify_all()

    def leave(self, member: Member) -> None:
        """Remove a member."""
        with self.changed:
            self._members.remove(member)

    def close(self) -> None:
        """End the thread after the turn it is in; do not wait for it."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except Exception as error:  # A turn deals with its own faults; the thread must go on.
                _log.error("turn_failed", error=error)

    def _next(self) -> Callable[[], None] | None:
        with self.changed:
            while not self._closed:
                now = self._clock()
                for member in self._members:
                    if (work := member.claim(now)) is not None:
                        # WEIR-231
                        self._members.remove(member)
                        self._members.append(member)
                        return work
                wakes = [at for m in self._members if (at := m.wakes_at(now)) is not None]
                self.changed.wait(max(0.0, min(wakes) - now) if wakes else None)
            return None
