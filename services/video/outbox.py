"""What a generation has to say, from any thread to the one coroutine that sends it.

Owns: order, the end after the outcome, and how much waits. Does not own: what is said, sending.
Enforces: WEIR-227 (everything between the threads and the network is bounded: media by the caller,
who looks at `chunks` before it makes more, requests by `room`, signs of life by replacing each
other), IO-INV-101 (nothing follows the outcome).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress

from contracts.generation import Chunk, GenerationUpdate, Outcome, Progress, Waiting

_REPLACEABLE = (Progress, Waiting)


class Outbox:
    """The messages of one generation. Made on the loop that sends them.

    `capacity` is how many messages may wait before `room` makes the reader of requests wait.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._messages: deque[GenerationUpdate] = deque()
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._ended = False
        self._chunks = 0

    @property
    def chunks(self) -> int:
        """Chunks that wait to be sent; any thread may ask."""
        return self._chunks

    def post(self, message: GenerationUpdate) -> bool:
        """Add `message` from any thread; False when nobody will read it: the outbox has ended."""
        with self._lock:
            if self._ended:
                return False
            self._ended = isinstance(message, Outcome)  # IO-INV-101
            last = self._messages[-1] if self._messages else None
            if isinstance(message, _REPLACEABLE) and type(last) is type(message):
                self._messages[-1] = message
            else:
                self._messages.append(message)
            self._chunks += isinstance(message, Chunk)
        with suppress(RuntimeError):  # The loop is closed, so nobody is left to be told.
            self._loop.call_soon_threadsafe(self._wake)
        return True

    async def get(self) -> GenerationUpdate:
        """Loop: return the next message; after the outcome there is none to wait for."""
        while True:
            with self._lock:  # Held for a few instructions by either side, never over a wait.
                if self._messages:
                    message = self._messages.popleft()
                    self._chunks -= isinstance(message, Chunk)
                    if len(self._messages) < self._capacity:
                        self._drained.set()
                    return message
                self._filled.clear()
            await self._filled.wait()

    async def room(self) -> None:
        """Loop: return when another request may be read."""
        await self._drained.wait()

    def close(self) -> None:
        """Take and keep nothing more; nobody reads it."""
        with self._lock:
            self._ended = True
            self._messages.clear()
            self._chunks = 0
        self._drained.set()

    def _wake(self) -> None:
        self._filled.set()
        if len(self._messages) >= self._capacity:
            self._drained.clear()
