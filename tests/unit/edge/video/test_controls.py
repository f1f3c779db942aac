"""Controls in front of the one writer of a call."""

from __future__ import annotations

import asyncio

from contracts.generation import Control, Credit, Interaction, Pause, Playback, Resume, Stop
from services.edge.backends.controls import ControlQueue


async def drained(queue: ControlQueue, count: int) -> list[Control | None]:
    return [await queue.next() for _ in range(count)]


async def test_controls_leave_in_order_and_credits_first() -> None:
    """WEIR-160: credits add up, so their number needs no room."""
    queue = ControlQueue(4)
    for control in (Pause(), Credit(1), Interaction("a", "Snow."), Credit(2), Stop()):
        queue.put(control)
    expected = [Credit(3), Pause(), Interaction("a", "Snow."), Stop()]
    assert await drained(queue, 4) == expected


async def test_a_newer_position_replaces_the_older_one() -> None:
    """WEIR-160: but none that something stands behind."""
    queue = ControlQueue(2)
    for position in range(100):
        queue.put(Playback(float(position)))
    queue.put(Pause())
    queue.put(Playback(100.0))
    assert await drained(queue, 3) == [Playback(99.0), Pause(), Playback(100.0)]


async def test_room_ends_at_the_capacity_and_comes_back() -> None:
    """WEIR-160: whoever passes on what a client sends is held up."""
    queue = ControlQueue(2)
    await queue.room()
    queue.put(Pause())
    queue.put(Resume())
    waiting = asyncio.ensure_future(queue.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await queue.next()
    await waiting


async def test_after_the_end_there_is_nothing_to_control() -> None:
    """WEIR-160: what waits is forgotten, and nobody is kept waiting."""
    queue = ControlQueue(1)
    queue.put(Pause())
    queue.put(Credit(1))
    waiting = asyncio.ensure_future(queue.room())
    await asyncio.sleep(0)
    queue.end()
    await waiting
    queue.put(Resume())
    queue.put(Credit(1))
    assert await queue.next() is None


async def test_next_waits_for_a_control() -> None:
    """WEIR-160: and wakes for a credit as for any other."""
    queue = ControlQueue(1)
    taking = asyncio.ensure_future(queue.next())
    await asyncio.sleep(0)
    assert not taking.done()
    queue.put(Credit(2))
    assert await taking == Credit(2)
