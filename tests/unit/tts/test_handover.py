"""The bounded way from a worker thread to the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from services.tts.handover import HandOver, HandOverClosedError

TIMEOUT_S = 10.0


@contextmanager
def _thread(target: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=target)
    thread.start()
    yield thread
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


async def test_items_arrive_in_order_and_then_the_end() -> None:
    """WEIR-193: nothing is lost, doubled or reordered; None comes after the last."""
    handover: HandOver[int] = HandOver(2)

    def produce() -> None:
        for number in range(500):
            handover.put(number)
        handover.end()

    with _thread(produce):
        assert [await handover.get() for _ in range(500)] == list(range(500))
        assert await handover.get() is None
        assert await handover.get() is None


async def test_an_error_arrives_after_the_items_before_it() -> None:
    """WEIR-193: the consumer gets everything that was produced, then the producer's error."""
    handover: HandOver[int] = HandOver(2)
    handover.put(1)
    handover.end(ValueError("broken"))
    assert await handover.get() == 1
    with pytest.raises(ValueError, match="broken"):
        await handover.get()


@pytest.mark.parametrize("capacity", [1, 3])
async def test_a_reader_that_never_reads_stops_the_producer_after_the_bound(capacity: int) -> None:
    """WEIR-193: the producer's thread waits with `capacity` items in the queue; the loop runs."""
    handover: HandOver[int] = HandOver(capacity)
    attempts: list[int] = []
    blocked = threading.Event()

    def produce() -> None:
        try:
            for number in range(100):
                attempts.append(number)
                if number == capacity:
                    blocked.set()
                handover.put(number)
        except HandOverClosedError:
            return

    with _thread(produce) as thread:
        assert await asyncio.to_thread(blocked.wait, TIMEOUT_S)
        # It is inside `put` now, or about to be; it can never get beyond it.
        thread.join(0.05)
        assert thread.is_alive()
        assert attempts == list(range(capacity + 1))
        handover.close()


async def test_each_item_taken_lets_one_more_in() -> None:
    """WEIR-193: the bound holds all the time, not only at first."""
    handover: HandOver[int] = HandOver(2)
    put: list[int] = []

    def produce() -> None:
        for number in range(50):
            handover.put(number)
            put.append(number)
        handover.end()

    with _thread(produce):
        taken = 0
        while await handover.get() is not None:
            taken += 1
            assert len(put) <= taken + 2
    assert taken == 50


async def test_closing_frees_a_producer_that_waits_and_every_later_put() -> None:
    """WEIR-193: a thread is never left behind with a reader that has gone."""
    handover: HandOver[int] = HandOver(1)
    handover.put(0)
    outcome: list[str] = []

    def produce() -> None:
        try:
            handover.put(1)
        except HandOverClosedError:
            outcome.append("freed")

    with _thread(produce) as thread:
        handover.close()
        await asyncio.to_thread(thread.join, TIMEOUT_S)
        assert outcome == ["freed"]
    assert handover.closed
    with pytest.raises(HandOverClosedError):
        handover.put(2)


def test_a_producer_outlives_the_loop_of_its_consumer() -> None:
    """WEIR-193: a thread that ends after its loop was closed ends without an error."""
    made: list[HandOver[int]] = []

    async def make() -> None:
        made.append(HandOver(4))

    asyncio.run(make())
    made[0].put(1)
    made[0].end()
