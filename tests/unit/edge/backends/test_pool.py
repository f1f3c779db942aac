"""The choice between replicas, without any network: channels here are never dialled."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.edge.backends.pool import ReplicaPool
from services.edge.backends.replica import Replica
from services.edge.backends.retry import Timing
from services.edge.backends.settings import PoolSettings
from services.edge.backends.targets import Address, Target, parse_targets
from services.runtime.channel import open_channel

A, B, C = (Address("127.0.0.1", port) for port in (1, 2, 3))
PATIENCE_S = 20.0


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def unresolvable(target: Target) -> tuple[Address, ...]:
    """Stand for a name service that does not answer."""
    raise OSError("no answer")


@asynccontextmanager
async def pool(clock: Clock, *unready: Address) -> AsyncIterator[ReplicaPool[str]]:
    """Run a pool of A, B and C, all ready but `unready`."""

    async def probe(replica: Replica[str]) -> str:
        if replica.address in unready:
            raise ValueError("as the test wants")
        return str(replica.address)

    subject = ReplicaPool(
        parse_targets([str(address) for address in (A, B, C)]),
        PoolSettings(),
        probe,
        open_channel=lambda address: open_channel(str(address)),
        resolve=unresolvable,
        timing=Timing(clock=clock, chance=random.Random(3)),
    )
    subject.start()
    try:
        wanted = 3 - len(unready)
        assert await subject.wait_until(lambda: len(subject.ready) == wanted, PATIENCE_S)
        yield subject
    finally:
        await subject.aclose()


def chosen(subject: ReplicaPool[str], tried: set[Address] | None = None) -> Address:
    """Return the address of the choice and end its request at once."""
    replica = subject.pick(tried or set())
    assert replica is not None
    with subject.lease(replica):
        return replica.address


async def test_equals_take_turns() -> None:
    """WEIR-132: no replica is favoured by its place in the list."""
    async with pool(Clock()) as subject:
        assert [chosen(subject) for _ in range(6)] == [A, B, C, A, B, C]


async def test_only_replicas_that_declared_themselves_are_chosen() -> None:
    """WEIR-132: an address that does not answer gets no segment."""
    async with pool(Clock(), A, C) as subject:
        assert [chosen(subject) for _ in range(3)] == [B, B, B]
    async with pool(Clock(), A, B, C) as subject:
        assert subject.pick() is None


async def test_the_least_busy_replica_is_chosen() -> None:
    """WEIR-132: outstanding requests come before turns."""
    async with pool(Clock()) as subject:
        first, second, third = subject.replicas
        with subject.lease(first), subject.lease(third):
            assert [chosen(subject) for _ in range(3)] == [B, B, B]
        assert second.outstanding == 0


async def test_a_replica_that_was_tried_comes_after_busier_ones() -> None:
    """WEIR-132: a further attempt goes to another replica where there is one."""
    async with pool(Clock()) as subject:
        _, second, third = subject.replicas
        with subject.lease(second), subject.lease(third), subject.lease(third):
            assert chosen(subject, {A}) == B
            assert chosen(subject, {A, B}) == C
            assert chosen(subject, {A, B, C}) == A


async def test_a_replica_that_failed_comes_last_until_its_time_is_over() -> None:
    """WEIR-132: it comes after tried ones too, but is never shut out."""
    clock = Clock()
    async with pool(clock, C) as subject:
        first, second = subject.ready
        subject.failed(first, asked_s=3.0, ask_again=False)
        assert [chosen(subject, {B}) for _ in range(2)] == [B, B]
        subject.failed(second, asked_s=5.0, ask_again=False)
        assert not subject.fresh
        assert subject.pick() is not None
        clock.now = 3.0
        assert subject.fresh
        assert [chosen(subject) for _ in range(2)] == [A, A]


async def test_failures_in_a_row_are_avoided_longer_and_a_success_ends_that() -> None:
    """WEIR-132: the backoff grows up to EDGE_BACKEND_OUTLIER_BACKOFF_MOST_S."""
    clock = Clock()
    async with pool(clock) as subject:
        replica = subject.replicas[0]
        spans = []
        for _ in range(12):
            subject.failed(replica, asked_s=0.0, ask_again=False)
            spans.append(replica.avoid_until)
        for earlier, later in zip(spans, spans[2:], strict=False):
            assert later >= earlier or later >= 5.0
        assert spans[0] <= 0.1
        assert max(spans) <= 10.0
        replica.succeeded()
        assert replica.avoid_until <= clock.now


async def test_a_lease_is_given_back_whatever_happens() -> None:
    """WEIR-132: a failed request does not make a replica look busy for ever."""
    async with pool(Clock()) as subject:
        replica = subject.replicas[0]
        seen: list[tuple[int, bool]] = []

        def fail() -> None:
            with subject.lease(replica):
                seen.append((replica.outstanding, replica.idle.is_set()))
                raise RuntimeError("as the test wants")

        with pytest.raises(RuntimeError):
            fail()
        assert seen == [(1, False)]
        assert replica.outstanding == 0
        assert replica.idle.is_set()


async def test_a_probe_that_breaks_does_not_end_the_watch_of_its_replica() -> None:
    """WEIR-132: the next look may succeed."""
    answers = [RuntimeError("as the test wants"), None]

    async def probe(replica: Replica[str]) -> str:
        if answers and (error := answers.pop(0)) is not None:
            raise error
        return "declared"

    subject = ReplicaPool(
        parse_targets(["127.0.0.1:1"]),
        PoolSettings(probe_backoff_first_s=0.001, probe_spacing_s=0.001),
        probe,
        open_channel=lambda address: open_channel(str(address)),
        resolve=unresolvable,
        timing=Timing(),
    )
    subject.start()
    try:
        assert await subject.wait_until(lambda: len(subject.ready) == 1, PATIENCE_S)
    finally:
        await subject.aclose()


async def test_a_wait_that_is_not_fulfilled_ends_by_its_timeout() -> None:
    """WEIR-132: False, not an exception."""
    async with pool(Clock(), A, B, C) as subject:
        assert not await subject.wait_until(lambda: bool(subject.ready), 0.01)
