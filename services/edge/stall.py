"""Removal of peers that have stopped reading.

Owns: the watch over drained bytes of one connection. Does not own: sending, or what else ends a
session. Enforces: WEIR-161 (a peer that drains nothing for the send deadline is aborted, a slow one
that moves is left alone). The WebSocket library does not do it: a pong does not prove reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_LOOKS_PER_LIMIT = 6


class StallWatch:
    """Looks at the write buffer from time to time, and aborts the transport when it stands still.

    `limit_s` is the send deadline in seconds, `clock` the monotonic time in seconds.
    """

    __slots__ = ("_best", "_clock", "_handed", "_limit_s", "_moved_at", "_transport", "stalled")

    def __init__(
        self, transport: asyncio.WriteTransport, limit_s: float, clock: Callable[[], float]
    ) -> None:
        self.stalled = False
        """True once the peer has been removed for not reading."""
        self._transport = transport
        self._limit_s = limit_s
        self._clock = clock
        self._handed = 0
        self._best = 0
        self._moved_at = clock()

    @property
    def interval_s(self) -> float:
        """Seconds between two looks."""
        return self._limit_s / _LOOKS_PER_LIMIT

    def handed(self, size: int) -> None:
        """Note that `size` bytes were given to the transport."""
        self._handed += size

    def look(self) -> bool:
        """Abort the peer when it has drained nothing for the limit; tell whether it was."""
        waiting = self._transport.get_write_buffer_size()
        # Frame headers and pings count in the buffer but not as handed over, so this never
        # overstates what has drained.
        drained = self._handed - waiting
        now = self._clock()
        if waiting == 0 or drained > self._best:
            self._best = max(drained, self._best)
            self._moved_at = now
        elif now - self._moved_at >= self._limit_s:
            self.stalled = True
            self._transport.abort()
        return self.stalled
