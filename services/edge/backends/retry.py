"""How long to wait before the next try.

Owns: the exponential backoff with jitter and the clock it is measured with. Does not own: which
failures are tried again (`tts`), or on which replica (`pool`).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `first_s` doubles with every failure up to `most_s`."""

    first_s: float
    most_s: float

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.most_s:
            raise ValueError("a backoff needs 0 < first_s <= most_s")

    def delay_s(self, failures: int, chance: random.Random) -> float:
        """Return the delay in seconds after `failures` failures in a row, at least one.

        The upper half is left to chance, so that callers that failed together come back apart.
        """
        exponent = min(failures - 1, 32)  # far above any most_s, and never an overflow
        full = min(self.most_s, self.first_s * 2.0**exponent)
        return full * chance.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time and chance come from; tests bring their own."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: random.Random = field(default_factory=random.Random)


class Alarm:
    """A wait that can be cut short, but never below its spacing: asking often costs nothing."""

    __slots__ = ("_rung", "_spacing_s")

    def __init__(self, spacing_s: float) -> None:
        self._rung = asyncio.Event()
        self._spacing_s = spacing_s

    def ring(self) -> None:
        """End the wait that is in progress, or else the next one."""
        self._rung.set()

    async def wait(self, delay_s: float) -> None:
        """Wait `delay_s` seconds, or less when rung."""
        spacing_s = min(delay_s, self._spacing_s)
        await asyncio.sleep(spacing_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s - spacing_s):
                await self._rung.wait()
        self._rung.clear()
