"""How a bidirectional stream is read and how it ends, the same way everywhere.

Owns: one reader for the whole call, and the end: the outcome, then reading and dropping, then the
status. Does not own: what an outcome holds, what requests mean. Enforces: WEIR-220 (a stream ends
with its outcome in-band, then with the same code and details, after the client has stopped writing
or a bounded time), WEIR-066 (no read is left behind).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from contracts.errors import Failure
from services.runtime.errors import Context, abort

DROP_S = 3.0
"""Longest time in which a client that has been told the outcome may go on writing."""

_CLOSE_S = 1.0

Request = TypeVar("Request")


class RequestReader(Generic[Request]):
    """Reads the requests of one call, one after the other, for one task at a time.

    A `next` that is cancelled loses nothing: the read goes on and the next `next` has its message.
    (grpc.aio ends the whole stream when a read of it is cancelled.) `close` it when the call ends.
    """

    def __init__(self, requests: AsyncIterator[Request]) -> None:
        self._requests = requests
        self._reading: asyncio.Task[Request | None] | None = None
        self._ended = False

    async def next(self) -> Request | None:
        """Return the next request; None when the client has half-closed, and from then on.

        Raises what the read raised, for a malformed message, once: the stream has ended with it.
        """
        if self._ended:
            return None
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="read request")
        try:
            request = await asyncio.shield(self._reading)
        except Exception:
            # Only the read raises these, and it is over; a cancellation leaves it under way.
            self._reading = None
            self._ended = True
            raise
        self._reading = None
        self._ended = request is None
        return request

    async def drop_rest(self, timeout_s: float) -> bool:
        """Read and drop everything until the client half-closes; False when it takes too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while await self.next() is not None:
                    pass
        return self._ended

    async def close(self) -> None:
        """Leave no read behind. Any number of times."""
        reading, self._reading = self._reading, None
        self._ended = True
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading}, timeout=_CLOSE_S)
            if reading.done() and not reading.cancelled():
                reading.exception()  # what a read says after the end of the call is no event

    async def _read(self) -> Request | None:
        return await anext(self._requests, None)


async def end_stream(
    context: Context,
    reader: RequestReader[Any],
    outcome: object,
    failed: Failure | None,
    *,
    drop_s: float = DROP_S,
) -> None:
    """Send `outcome`, the last message, and end the call with OK or the status of `failed`.

    Returns when the call may end with OK; raises grpc.aio.AbortError after a failure. Nothing else
    may read `reader` meanwhile.
    """
    await context.write(outcome)
    # WEIR-220: a status that races a write of the client is lost, so the writing ends first.
    await reader.drop_rest(drop_s)
    if failed is not None:
        await abort(context, failed)
