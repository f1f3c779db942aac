"""From any thread to the coroutine that sends."""

from __future__ import annotations

import asyncio

import pytest

from contracts.generation import (
    Chunk,
    GenerationUpdate,
    InteractionQueued,
    Outcome,
    Progress,
    Waiting,
    WaitReason,
)
from services.video.outbox import Outbox

END = Outcome(None, False, 0)


def chunk(index: int) -> Chunk:
    return Chunk(index, index, 1, b"x")


async def taken(outbox: Outbox, count: int) -> list[GenerationUpdate]:
    return [await outbox.get() for _ in range(count)]


async def test_messages_keep_their_order_over_threads() -> None:
    """WEIR-227: what one thread posts before another comes before it."""
    outbox = Outbox(10)
    for index in range(50):
        await asyncio.to_thread(outbox.post, chunk(index))
    assert await taken(outbox, 50) == [chunk(index) for index in range(50)]


async def test_a_waiting_reader_is_woken_from_another_thread() -> None:
    """WEIR-227: the loop never polls."""
    outbox = Outbox(10)
    waiting = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    assert not waiting.done()
    await asyncio.to_thread(outbox.post, chunk(0))
    assert await waiting == chunk(0)


async def test_chunks_that_wait_are_counted() -> None:
    """WEIR-227: the generation looks at this before it makes more."""
    outbox = Outbox(10)
    outbox.post(chunk(0))
    outbox.post(InteractionQueued("a"))
    outbox.post(chunk(1))
    assert outbox.chunks == 2
    await taken(outbox, 1)
    assert outbox.chunks == 1
    outbox.close()
    assert outbox.chunks == 0


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (Progress(0, 1), Progress(0, 2)),
        (Waiting(WaitReason.CREDIT), Waiting(WaitReason.PAUSE)),
    ],
)
async def test_signs_of_life_replace_each_other(
    older: GenerationUpdate, newer: GenerationUpdate
) -> None:
    """WEIR-227: a reader that stalls has one of them to read, the newest."""
    outbox = Outbox(10)
    outbox.post(older)
    outbox.post(newer)
    outbox.post(END)
    assert await taken(outbox, 2) == [newer, END]


async def test_other_messages_do_not_replace_each_other() -> None:
    """WEIR-227: two acknowledgements are two."""
    outbox = Outbox(10)
    for _ in range(2):
        outbox.post(InteractionQueued("a"))
    assert await taken(outbox, 2) == [InteractionQueued("a")] * 2


async def test_nothing_follows_the_outcome() -> None:
    """IO-INV-101: who posts later is told."""
    outbox = Outbox(10)
    assert outbox.post(END)
    assert not outbox.post(chunk(0))
    assert await taken(outbox, 1) == [END]
    assert outbox.chunks == 0


async def test_a_full_outbox_makes_the_reader_of_requests_wait() -> None:
    """WEIR-227: until there is room, or nobody reads any more."""
    outbox = Outbox(2)
    outbox.post(InteractionQueued("a"))
    await outbox.room()
    outbox.post(InteractionQueued("b"))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await outbox.get()
    await waiting
    outbox.post(InteractionQueued("c"))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.close()
    await waiting
    assert not outbox.post(chunk(0))
