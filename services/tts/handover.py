"""From a worker thread to the event loop, bounded.

Owns: the queue between one producing thread and one consuming coroutine. Does not own: what
travels, either side. Enforces: WEIR-193 (a reader that stalls stops the producer after `capacity`
items and never blocks the loop; closing frees a producer that waits).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")


class HandOverClosedError(Exception):
    """The consumer is gone: the producer has nothing left to do."""


class HandOver(Generic[Item]):
    """Queue of at most `capacity` items. Made on the loop of its consumer."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._ended = False
        self._error: BaseException | None = None

    @property
    def closed(self) -> bool:
        """True once the consumer is gone; any thread may ask."""
        return self._closed

    def put(self, item: Item) -> None:
        """Producer's thread: add `item`, waiting for room. Raises HandOverClosedError."""
        with self._changed:
            # WEIR-193: the thread waits here for as long as the reader takes.
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._capacity)
            if self._closed:
                raise HandOverClosedError
            self._items.append(item)
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """Producer's thread: nothing follows; `error` is raised to the consumer at the end."""
        with self._changed:
            self._ended, self._error = True, error
        self._wake()

    async def get(self) -> Item | None:
        """Loop: return the next item, None after the last; raises the producer's error."""
        while True:
            with self._changed:  # Held for a few instructions by either side, never over a wait.
                if self._items:
                    item = self._items.popleft()
                    self._changed.notify()
                    return item
                if self._ended:
                    if self._error is not None:
                        raise self._error
                    return None
                self._ready.clear()
            await self._ready.wait()

    def close(self) -> None:
        """Loop: take nothing more; drop what waits and free the producer."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # The loop is closed, so nobody is left to be woken.
            self._loop.call_soon_threadsafe(self._ready.set)
