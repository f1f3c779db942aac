"""The backoff and the wait that can be cut short."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.edge.backends.retry import Alarm, Backoff

LONG_S = 3600.0


@given(st.integers(1, 10**9), st.integers())
def test_a_delay_doubles_with_every_failure_and_stays_within_its_bounds(
    failures: int, seed: int
) -> None:
    """WEIR-134: never longer than the most, never shorter than half of what is due."""
    delay = Backoff(0.5, 8.0).delay_s(failures, random.Random(seed))
    due = min(8.0, 0.5 * 2 ** min(failures - 1, 10))
    assert due / 2 <= delay <= due


def test_two_callers_that_failed_together_come_back_apart() -> None:
    """WEIR-134: jitter."""
    chance = random.Random(1)
    assert len({Backoff(1, 1).delay_s(1, chance) for _ in range(20)}) == 20


@pytest.mark.parametrize(("first", "most"), [(0, 1), (-1, 1), (2, 1)])
def test_a_backoff_that_cannot_grow_is_refused(first: float, most: float) -> None:
    """WEIR-134: 0 < first <= most."""
    with pytest.raises(ValueError, match="0 < first_s <= most_s"):
        Backoff(first, most)


async def test_a_ring_ends_the_wait_in_progress() -> None:
    """WEIR-132: whoever needs an answer now does not wait for the interval."""
    alarm = Alarm(0.001)
    waiting = asyncio.create_task(alarm.wait(LONG_S))
    await asyncio.sleep(0)
    alarm.ring()
    async with asyncio.timeout(20):
        await waiting


async def test_a_ring_before_the_wait_ends_the_next_one_and_no_other() -> None:
    """WEIR-132: many rings are one."""
    alarm = Alarm(0.001)
    alarm.ring()
    alarm.ring()
    async with asyncio.timeout(20):
        await alarm.wait(LONG_S)
    waiting = asyncio.create_task(alarm.wait(LONG_S))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_rings_never_shorten_a_wait_below_its_spacing() -> None:
    """WEIR-132: a thousand failing requests do not become a thousand questions."""
    loop = asyncio.get_running_loop()
    alarm = Alarm(0.05)
    alarm.ring()
    began = loop.time()
    await alarm.wait(LONG_S)
    assert loop.time() - began >= 0.049


async def test_without_a_ring_a_wait_lasts_its_delay() -> None:
    """WEIR-132: also when the delay is shorter than the spacing."""
    loop = asyncio.get_running_loop()
    for delay_s in (0.001, 0.03):
        began = loop.time()
        await Alarm(0.01).wait(delay_s)
        assert loop.time() - began >= delay_s * 0.95
