"""The client's end of a connection: frames in, frames out, the watch over a peer that stalls.

Owns: the one writer with its outbox, reading, the stall watch, the close, and the timer of a
session. Does not own: what frames mean (the endpoint's driver), when a session ends (its core).
Enforces: WEIR-162 (only the writer sends), WEIR-160 (bounded queues: a peer that asks and does not
read is read no further), WEIR-161 (a peer that drains nothing is removed).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from websockets.exceptions import ConnectionClosed

from contracts.errors import Reason
from services.edge.outbox import Frame, Outbox
from services.edge.session_events import Close
from services.edge.stall import GuardedConnection, StallWatch
from services.runtime.logging import get_logger

_LOGGER = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How a connection is written to. Durations are seconds."""

    send_deadline_s: float
    outbox_bytes: int
    outbox_frames: int
    close_timeout_s: float


class ClientLink:
    """One WebSocket, for one session. Needs a running event loop.

    `sent` is told of every frame when the socket has taken it, `stalled` when the peer is removed.
    """

    def __init__(
        self,
        websocket: GuardedConnection,
        settings: LinkSettings,
        *,
        stalled: Callable[[], None],
        sent: Callable[[Frame], None] | None = None,
    ) -> None:
        self._websocket = websocket
        self._settings = settings
        self._stalled = stalled
        self._sent = sent
        self._loop = asyncio.get_running_loop()
        self._watch = StallWatch(websocket.transport, settings.send_deadline_s, self._loop.time)
        websocket.watch = self._watch
        self._looking: asyncio.TimerHandle | None = None
        self._closing = Close(1000, "")
        self.outbox = Outbox(settings.outbox_bytes, settings.outbox_frames)
        """What waits to be sent; the writer alone takes from it."""

    def close(self, closing: Close) -> None:
        """End the connection once everything has been sent, or at once when it says so."""
        self._closing = closing
        self.outbox.end(discard=closing.discard)

    def abort(self) -> None:
        """Drop the connection without a word; for a peer that does not let itself be told."""
        self._websocket.transport.abort()

    def look_for_stall(self) -> None:
        """Look at the peer now and from time to time, until `end`."""
        if self._watch.look():
            self._stalled()
            _LOGGER.warning("peer_stalled", limit_s=self._settings.send_deadline_s)
            return
        self._looking = self._loop.call_later(self._watch.interval_s, self.look_for_stall)

    async def serve(
        self,
        group: asyncio.TaskGroup,
        read: Callable[[], Awaitable[None]],
        *,
        name: str,
        sorry: str,
    ) -> None:
        """Run the writer and `read` in `group`, to the end of the connection.

        A fault of ours ends with the frame `sorry` and 1011. Only a cancellation is raised.
        """
        try:
            async with group:
                group.create_task(self.write(), name=f"{name}-writer")
                self.look_for_stall()
                await read()
        except* Exception as faults:
            _LOGGER.error("session_fault", error=faults)
            await self.apologise(sorry, Reason.INTERNAL.value.lower())

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Give the peer's frames until the connection has ended; that ends the iteration."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                yield await self._websocket.recv()
                if self.outbox.overfull:
                    # A peer that asks and does not read is read no further until it does.
                    await self.outbox.room()

    async def write(self) -> None:
        """Send frames in order, then close; the only place that does."""
        try:
            while (frame := await self.outbox.take()) is not None:
                await self._websocket.send(frame)
                if self._sent is not None:
                    self._sent(frame)
            await self._websocket.close(self._closing.code, self._closing.reason)
        except ConnectionClosed:
            pass  # the reader sees it too
        finally:
            # Nobody takes frames any more: the reader too may wait for room that never comes.
            self.outbox.end(discard=True)

    def end(self) -> None:
        """Send nothing more and stop looking."""
        self.outbox.end(discard=True)
        if self._looking is not None:
            self._looking.cancel()

    async def apologise(self, frame: Frame, reason: str) -> None:
        """Send a last frame past the outbox and close with 1011, in bounded time."""
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(self._settings.close_timeout_s):
                await self._websocket.send(frame)
                await self._websocket.close(1011, reason)


class SessionTimer:
    """A timer at or before the deadline of a session; one that fires early does no harm."""

    __slots__ = ("_loop", "_ring", "_timer")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def arm(self, deadline: float | None) -> None:
        """Ring at `deadline`, in the time of the loop, or earlier."""
        if deadline is None or (self._timer is not None and self._timer.when() <= deadline):
            return
        self.disarm()
        self._timer = self._loop.call_at(deadline, self._on_timer)

    def disarm(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        self._ring()
