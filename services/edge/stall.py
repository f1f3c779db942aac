"""Removal of peers that have stopped reading.

Owns: the watch over the write buffer of one connection, and the bound of what the WebSocket library
answers by itself. Does not own: sending, or what else ends a session. Enforces: WEIR-161 (a peer
that drains nothing for the send deadline is aborted, a slow one that moves is left alone), WEIR-160
(pongs do not pile up). The library does neither: a pong proves no reading, and is sent unasked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.asyncio.server import ServerConnection

from services.runtime.logging import get_logger

_LOGGER = get_logger(__name__)

_LOOKS_PER_LIMIT = 6
MAX_ANSWER_BYTES = 64 * 1024
"""Pongs that may wait for a peer: hundreds, where one that reads leaves none."""


class StallWatch:
    """Looks at the write buffer from time to time, and aborts the transport when it stands still.

    `limit_s` is the send deadline in seconds, `clock` the monotonic time in seconds.
    """

    __slots__ = ("_clock", "_limit_s", "_moved_at", "_transport", "_waiting", "stalled")

    def __init__(
        self, transport: asyncio.WriteTransport, limit_s: float, clock: Callable[[], float]
    ) -> None:
        self.stalled = False
        """True once the peer has been removed for not reading."""
        self._transport = transport
        self._limit_s = limit_s
        self._clock = clock
        self._waiting = 0
        self._moved_at = clock()

    @property
    def interval_s(self) -> float:
        """Seconds between two looks."""
        return self._limit_s / _LOOKS_PER_LIMIT

    def before_write(self) -> None:
        """Note what has drained, right before more is given to the transport."""
        # Between two writes only the peer makes the buffer shorter. Sums of what was sent would
        # have to know every frame header, pong and multi-byte character.
        waiting = self._transport.get_write_buffer_size()
        if waiting == 0 or waiting < self._waiting:
            self._moved_at = self._clock()
        self._waiting = waiting

    def after_write(self) -> None:
        """Note how much waits now."""
        self._waiting = self._transport.get_write_buffer_size()

    def look(self) -> bool:
        """Abort the peer when it has drained nothing for the limit; tell whether it was."""
        self.before_write()
        if self._clock() - self._moved_at >= self._limit_s:
            self.stalled = True
            self._transport.abort()
        return self.stalled


class GuardedConnection(ServerConnection):
    """A WebSocket connection that shows all its writes to a watch, and bounds the pongs that wait.

    The library answers a ping at once and reads on, whether or not its answers drain.
    """

    watch: StallWatch | None = None
    _answer_bytes = 0

    def send_data(self) -> None:
        """Give the transport what is to be written; frames and answers alike pass here."""
        if self.watch is None:
            super().send_data()
            return
        self.watch.before_write()
        super().send_data()
        self.watch.after_write()

    def data_received(self, data: bytes) -> None:
        """Take bytes in; abort a peer that has asked for too many answers without reading them."""
        before = self.transport.get_write_buffer_size()
        if before == 0:
            self._answer_bytes = 0
        super().data_received(data)
        self._answer_bytes += max(0, self.transport.get_write_buffer_size() - before)
        if self._answer_bytes > MAX_ANSWER_BYTES and not self.transport.is_closing():
            _LOGGER.warning("peer_floods", answer_bytes=self._answer_bytes)
            self.transport.abort()

    def resume_writing(self) -> None:
        """Go on sending: the peer has read."""
        self._answer_bytes = 0
        super().resume_writing()
