"""Controls on their way to one generation.

Owns: the bounded queue in front of the one writer of a call. Does not own: what is controlled, or
the call. Enforces: WEIR-160 (nothing is unbounded: credits add up, a newer position replaces an
older one, and whoever passes on what a client sends waits for room).
"""

from __future__ import annotations

import asyncio
from collections import deque

from contracts.generation import Control, Credit, Playback


class ControlQueue:
    """Controls in order, credits first. `put` never waits; its caller awaits `room` after it."""

    __slots__ = ("_capacity", "_controls", "_credits", "_ended", "_room", "_stock")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._controls: deque[Control] = deque()
        self._credits = 0
        self._ended = False
        self._room = asyncio.Event()
        self._room.set()
        self._stock = asyncio.Event()

    def put(self, control: Control) -> None:
        """Append a control; after `end` it is dropped."""
        if self._ended:
            return
        if isinstance(control, Credit):
            self._credits += control.chunks
        elif isinstance(control, Playback) and self._newest_is_playback():
            self._controls[-1] = control
        else:
            self._controls.append(control)
        self._stock.set()
        if len(self._controls) >= self._capacity:
            self._room.clear()

    def end(self) -> None:
        """Take no more controls and forget those that wait: there is nothing left to control."""
        self._ended = True
        self._controls.clear()
        self._credits = 0
        self._room.set()
        self._stock.set()

    async def room(self) -> None:
        """Wait until there is room; at once after `end`."""
        await self._room.wait()

    async def next(self) -> Control | None:
        """Return the next control; None after `end`."""
        while not self._controls and not self._credits:
            if self._ended:
                return None
            self._stock.clear()
            await self._stock.wait()
        if self._credits:
            credit, self._credits = Credit(self._credits), 0
            return credit
        control = self._controls.popleft()
        if len(self._controls) < self._capacity:
            self._room.set()
        return control

    def _newest_is_playback(self) -> bool:
        return bool(self._controls) and isinstance(self._controls[-1], Playback)
