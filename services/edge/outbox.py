"""Frames on their way to one client.

Owns: the bounded queue in front of the connection's one writer. Does not own: what is sent, or the
socket. Enforces: WEIR-160 (nothing is unbounded: producers of media wait for room).
"""

from __future__ import annotations

import asyncio
from collections import deque

Frame = str | bytes
_OVERFULL = 4


class Outbox:
    """Frames in order. `put` never waits; whoever produces much awaits `room` after it.

    Bounds are in bytes (text counts its characters) and in frames. They are soft: what one call
    puts always fits, so the queue holds at most the bound and one more delivery.
    """

    __slots__ = ("_bytes", "_ended", "_frames", "_max_bytes", "_max_frames", "_room", "_stock")

    def __init__(self, max_bytes: int, max_frames: int) -> None:
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._ended = False
        self._room = asyncio.Event()
        self._room.set()
        self._stock = asyncio.Event()

    def put(self, frame: Frame) -> None:
        """Append a frame; after `end` it is dropped."""
        if self._ended:
            return
        self._frames.append(frame)
        self._bytes += len(frame)
        self._stock.set()
        if self._bytes >= self._max_bytes or len(self._frames) >= self._max_frames:
            self._room.clear()

    def end(self, *, discard: bool = False) -> None:
        """Take no more frames; with `discard` forget the ones that wait."""
        self._ended = True
        if discard:
            self._frames.clear()
            self._bytes = 0
        self._room.set()
        self._stock.set()

    @property
    def overfull(self) -> bool:
        """True when far more frames wait than media alone could be: the peer asks, never reads."""
        return len(self._frames) >= _OVERFULL * self._max_frames

    async def room(self) -> None:
        """Wait until there is room; at once after `end`."""
        await self._room.wait()

    async def take(self) -> Frame | None:
        """Return the next frame; None when the outbox has ended and is empty."""
        while not self._frames:
            if self._ended:
                return None
            self._stock.clear()
            await self._stock.wait()
        frame = self._frames.popleft()
        self._bytes -= len(frame)
        if self._bytes < self._max_bytes and len(self._frames) < self._max_frames:
            self._room.set()
        return frame
