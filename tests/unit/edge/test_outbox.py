"""Laws of the queue in front of a connection's one writer."""

from __future__ import annotations

import asyncio

import pytest

from services.edge.outbox import Frame, Outbox

MAX_BYTES, MAX_FRAMES = 100, 10


@pytest.fixture
def outbox() -> Outbox:
    """An outbox of 100 bytes and 10 frames."""
    return Outbox(MAX_BYTES, MAX_FRAMES)


def has_room(outbox: Outbox) -> bool:
    """Whether `room` returns without waiting."""
    waiting = outbox.room()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    finally:
        waiting.close()
    return False


async def test_frames_leave_in_the_order_they_came(outbox: Outbox) -> None:
    """WEIR-162: text and audio share one order."""
    frames: list[Frame] = ["start", b"\x01\x02", "", b"", "done"]
    for frame in frames:
        outbox.put(frame)
    assert [await outbox.take() for _ in frames] == frames


async def test_take_waits_for_the_next_frame(outbox: Outbox) -> None:
    """WEIR-162: the writer sleeps while there is nothing to send."""
    taking = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    assert not taking.done()
    outbox.put("frame")
    assert await taking == "frame"


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([b"x" * (MAX_BYTES - 1)], True),
        ([b"x" * MAX_BYTES], False),
        (["x" * MAX_BYTES], False),
        ([b"x" * 50, b"x" * 50], False),
        (["汉" * (MAX_BYTES - 1)], True),
        (["汉" * MAX_BYTES], False),
        ([""] * (MAX_FRAMES - 1), True),
        ([""] * MAX_FRAMES, False),
    ],
)
async def test_room_ends_at_either_bound(
    outbox: Outbox, frames: list[Frame], expected: bool
) -> None:
    """WEIR-160: bytes and frames are bounded, text by its characters."""
    for frame in frames:
        outbox.put(frame)
    assert has_room(outbox) is expected


async def test_a_frame_larger_than_the_bound_is_taken_whole(outbox: Outbox) -> None:
    """WEIR-160: the bound is soft by one delivery, so no file is ever too large to send."""
    outbox.put(b"x" * 10 * MAX_BYTES)
    assert not has_room(outbox)
    assert await outbox.take() == b"x" * 10 * MAX_BYTES
    assert has_room(outbox)


async def test_room_returns_when_enough_was_taken_and_not_before(outbox: Outbox) -> None:
    """WEIR-160: who produces waits until both bounds are kept again."""
    for _ in range(MAX_FRAMES + 1):
        outbox.put(b"x" * 20)
    waiting = asyncio.create_task(outbox.room())
    for left in range(MAX_FRAMES, -1, -1):
        await asyncio.sleep(0)
        assert not waiting.done(), f"{left + 1} frames wait"
        await outbox.take()
        if left * 20 < MAX_BYTES:
            break
    await asyncio.wait_for(waiting, 1)


async def test_every_waiter_gets_room(outbox: Outbox) -> None:
    """WEIR-160: the reader and the pumps wait for the same room."""
    outbox.put(b"x" * MAX_BYTES)
    waiting = [asyncio.create_task(outbox.room()) for _ in range(3)]
    await outbox.take()
    await asyncio.wait_for(asyncio.gather(*waiting), 1)


async def test_an_outbox_that_has_ended_gives_the_rest_and_then_none(outbox: Outbox) -> None:
    """WEIR-162: what was said before the end still goes out, nothing after it does."""
    outbox.put("last words")
    outbox.end()
    outbox.put("too late")
    assert await outbox.take() == "last words"
    assert await outbox.take() is None
    assert await outbox.take() is None


async def test_discarding_forgets_what_waits(outbox: Outbox) -> None:
    """WEIR-162: after `session.close` nothing more is emitted."""
    outbox.put(b"x" * MAX_BYTES)
    outbox.end(discard=True)
    assert await outbox.take() is None


async def test_a_later_discard_empties_an_outbox_that_has_ended(outbox: Outbox) -> None:
    """WEIR-162: a peer that vanishes during the goodbye is sent nothing more."""
    outbox.put("goodbye")
    outbox.end()
    outbox.end(discard=True)
    assert await outbox.take() is None


@pytest.mark.parametrize("discard", [True, False])
async def test_the_end_releases_everybody_who_waits(outbox: Outbox, discard: bool) -> None:
    """WEIR-160: nobody waits for room or frames that will never come."""
    taking = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    outbox.end(discard=discard)
    assert await asyncio.wait_for(taking, 1) is None
    full = Outbox(MAX_BYTES, MAX_FRAMES)
    full.put(b"x" * MAX_BYTES)
    waiting = asyncio.create_task(full.room())
    await asyncio.sleep(0)
    full.end(discard=discard)
    await asyncio.wait_for(waiting, 1)


async def test_room_stays_open_after_the_end(outbox: Outbox) -> None:
    """WEIR-160: a pump that is late does not hang on an outbox that nobody empties."""
    outbox.put("x")
    outbox.end()
    for _ in range(2 * MAX_FRAMES):
        outbox.put(b"x" * MAX_BYTES)
    assert has_room(outbox)


async def test_overfull_is_far_beyond_what_media_alone_can_reach(outbox: Outbox) -> None:
    """WEIR-160: only answers to a peer that asks and does not read pile up so high."""
    seen = []
    for _ in range(5 * MAX_FRAMES):
        seen.append(outbox.overfull)
        outbox.put("pong")
    assert seen.index(True) > MAX_FRAMES
    assert outbox.overfull
    while outbox.overfull:
        await outbox.take()
    assert not has_room(outbox), "the reader waits until the queue is short, not merely shorter"
