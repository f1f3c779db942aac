"""Speech rule 6 against real gRPC servers: what is tried again, where, and until when."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from contracts.errors import GrpcCode, Reason, WeirError
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    IdentifiedUpdate,
    Outcome,
)
from tests.integration.backends.scripted import (
    FORMAT,
    PATIENCE_S,
    Held,
    Relay,
    Replica,
    fails,
    running,
    speaks,
    whole,
)
from tests.integration.backends.support import (
    REQUEST,
    FakeTime,
    audio_of,
    backend,
    collect,
    failure_of,
)

LIMITS_S = 5.0
"""Far above the limits that tests set, far below the defaults."""

SPOKEN = b"".join(bytes([index] * 8) for index in range(3))


async def test_a_segment_is_given_whole_and_in_order() -> None:
    """IO-INV-101: accepted, chunks, the audio's terminal, outcome, each as it was sent."""
    replica = Replica()
    async with running(replica) as targets, backend(targets) as subject:
        updates = await collect(subject)
    assert [update.update for update in updates] == whole()
    assert {update.identity for update in updates} == {REQUEST.identity}
    assert replica.requests[0].text.text == " Hello."


async def test_a_stream_that_has_ended_before_it_is_read_loses_nothing() -> None:
    """IO-INV-101: a status that arrives while chunks are unread does not overtake them."""
    received: list[IdentifiedUpdate] = []
    async with (
        running(Replica(speaks(whole(50)))) as targets,
        backend(targets) as subject,
        aclosing(subject.synthesize(REQUEST, deadline_s=30)) as updates,
    ):
        async for update in updates:
            received.append(update)
            for _ in range(20):  # lets the transport run ahead of the reader
                await asyncio.sleep(0)
    assert len(received) == 53


@pytest.mark.parametrize(
    "reason", [Reason.OVERLOADED, Reason.SHUTTING_DOWN, Reason.BACKEND_UNAVAILABLE]
)
async def test_a_refusal_is_tried_again_as_the_next_attempt_of_the_same_request(
    reason: Reason,
) -> None:
    """IO-INV-100: the request id stays, the attempt counts up, all else is the same."""
    time = FakeTime()
    replica = Replica(fails(reason), fails(reason), speaks())
    async with running(replica) as targets, backend(targets, timing=time.timing()) as subject:
        updates = await collect(subject)
    assert replica.attempts == [1, 2, 3]
    first, *others = replica.requests
    for other in others:
        other.identity.attempt = 1
        assert other == first
    assert [update.identity.attempt for update in updates] == [3] * 6
    assert audio_of(updates) == SPOKEN
    assert len(time.waits) == 2


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.INVALID_MESSAGE, GrpcCode.INVALID_ARGUMENT),
        (Reason.UNSUPPORTED_OPTION, GrpcCode.FAILED_PRECONDITION),
        (Reason.MESSAGE_TOO_LARGE, GrpcCode.INVALID_ARGUMENT),
        (Reason.INTERNAL, GrpcCode.INTERNAL),
        (Reason.DEADLINE_EXCEEDED, GrpcCode.DEADLINE_EXCEEDED),
    ],
)
async def test_what_is_neither_refusal_nor_lost_connection_is_not_tried_again(
    reason: Reason, code: GrpcCode
) -> None:
    """WEIR-134, WEIR-135: before acceptance the backend's own failure is the answer."""
    replica = Replica(fails(reason), speaks())
    async with running(replica, Replica()) as targets, backend(targets) as subject:
        failed = await failure_of(subject)
    assert (failed.reason, failed.code) == (reason, code)
    assert replica.attempts == [1]


async def test_a_refusal_is_tried_on_another_replica_at_once_though_the_first_asks_for_time() -> (
    None
):
    """WEIR-134: the wish of one replica says nothing about another."""
    time = FakeTime()
    full = Replica(fails(Reason.OVERLOADED, retry_after_ms=4000))
    free = Replica()
    async with running(full, free) as targets, backend(targets, timing=time.timing()) as subject:
        await collect(subject)
    assert (full.attempts, free.attempts) == ([1], [2])
    assert sum(time.waits) <= 0.05


async def test_the_only_replica_gets_the_time_it_asks_for_up_to_a_limit() -> None:
    """WEIR-134: RetryInfo is honoured, and bounded by EDGE_BACKEND_RETRY_AFTER_MOST_S."""
    time = FakeTime()
    replica = Replica(
        fails(Reason.OVERLOADED, retry_after_ms=2000),
        fails(Reason.OVERLOADED, retry_after_ms=3_600_000),
        speaks(),
    )
    async with running(replica) as targets, backend(targets, timing=time.timing()) as subject:
        await collect(subject)
    first, second = time.waits
    assert 2.0 <= first <= 2.5
    assert 5.0 <= second <= 6.25


async def test_waits_grow_with_every_attempt() -> None:
    """WEIR-134: exponential backoff, its upper half left to chance."""
    time = FakeTime()
    replica = Replica(*[fails(Reason.OVERLOADED)] * 5, speaks())
    async with running(replica) as targets, backend(targets, timing=time.timing()) as subject:
        await collect(subject)
    for wait, full in zip(time.waits, (0.05, 0.1, 0.2, 0.4, 0.8), strict=True):
        assert full / 2 <= wait <= full


async def test_refusals_are_tried_again_only_up_to_the_deadline() -> None:
    """WEIR-134: when the deadline would pass, the last refusal is the answer."""
    time = FakeTime()
    began = time.now
    async with (
        running(Replica(fails(Reason.OVERLOADED))) as targets,
        backend(targets, timing=time.timing()) as subject,
    ):
        failed = await failure_of(subject, deadline_s=30.0)
    assert failed.reason is Reason.OVERLOADED
    assert 26.0 <= time.now - began < 30.0


async def test_a_connection_lost_before_acceptance_is_tried_on_another_replica() -> None:
    """WEIR-134, IO-INV-100: the other replica meets the second attempt."""
    held = Held(first=[])
    dying, living = Replica(held), Replica()
    async with running(dying, living) as (_, other):
        relay = Relay(dying.port)
        async with relay as target, backend((target, other)) as subject:
            speaking = asyncio.create_task(collect(subject))
            async with asyncio.timeout(PATIENCE_S):
                await held.holding.wait()
                relay.cut()
                updates = await speaking
    assert (dying.attempts, living.attempts) == ([1], [2])
    assert audio_of(updates) == SPOKEN


async def test_a_replica_that_is_silent_before_acceptance_counts_as_lost() -> None:
    """WEIR-134: silence is tried on another replica, and the silent one is told to stop."""
    held = Held(first=[])
    silent, living = Replica(held), Replica()
    async with (
        running(silent, living) as targets,
        backend(targets, accept_timeout_s=0.2) as subject,
    ):
        async with asyncio.timeout(LIMITS_S):
            updates = await collect(subject)
        async with asyncio.timeout(PATIENCE_S):
            await held.cancelled.wait()
    assert (silent.attempts, living.attempts) == ([1], [2])
    assert audio_of(updates) == SPOKEN


async def test_silence_of_the_only_replica_fails_at_the_deadline() -> None:
    """WEIR-134: the deadline bounds a single silent attempt as well."""
    async with running(Replica(Held(first=[]))) as targets, backend(targets) as subject:
        async with asyncio.timeout(LIMITS_S):
            failed = await failure_of(subject, deadline_s=0.2)
    assert failed.reason is Reason.BACKEND_UNAVAILABLE


async def test_a_connection_lost_after_acceptance_is_not_tried_again() -> None:
    """WEIR-134, WEIR-135: the segment failed, with the code of what was lost."""
    held = Held(first=whole()[:1])
    dying, living = Replica(held), Replica()
    async with running(dying, living) as (_, other):
        relay = Relay(dying.port)
        async with (
            relay as target,
            backend((target, other)) as subject,
            aclosing(subject.synthesize(REQUEST, deadline_s=30)) as updates,
        ):
            assert isinstance((await anext(updates)).update, Accepted)
            relay.cut()
            with pytest.raises(WeirError) as caught:
                await anext(updates)
    failed = caught.value.failure
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.UNAVAILABLE)
    assert living.requests == []


@pytest.mark.parametrize("code", [GrpcCode.INTERNAL, GrpcCode.RESOURCE_EXHAUSTED])
async def test_a_failure_after_acceptance_is_the_segments_with_the_backends_code(
    code: GrpcCode,
) -> None:
    """WEIR-135: reason SEGMENT_FAILED, the backend's own code, a fixed message."""
    script = fails(Reason.SEGMENT_FAILED, code=code, after=whole()[:2])
    async with running(Replica(script)) as targets, backend(targets) as subject:
        failed = await failure_of(subject)
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, code)
    assert failed.message == "The segment could not be synthesized."


@pytest.mark.parametrize(
    "reason", [Reason.INTERNAL, Reason.SEGMENT_FAILED, Reason.BACKEND_UNAVAILABLE]
)
async def test_an_accepted_segment_without_a_byte_is_tried_again_where_the_adapter_allows(
    reason: Reason,
) -> None:
    """IO-INV-102, WEIR-120: what was given once, `Accepted`, is not given again."""
    replica = Replica(fails(reason, after=whole()[:1]), speaks())
    async with running(replica) as targets, backend(targets) as subject:
        updates = await collect(subject, retry_after_accept=True)
    assert replica.attempts == [1, 2]
    assert [update.update for update in updates] == whole()
    assert [update.identity.attempt for update in updates] == [1, 2, 2, 2, 2, 2]
    assert {update.identity.request_id for update in updates} == {"request-1"}


@pytest.mark.parametrize(
    ("given", "retry_after_accept"),
    [
        pytest.param(whole()[:1], False, id="not allowed"),
        pytest.param(whole()[:2], True, id="one chunk given"),
        pytest.param([Accepted(FORMAT), AudioCompleted(0, 0, 0)], True, id="a terminal given"),
    ],
)
async def test_an_accepted_segment_is_not_tried_again(
    given: list[object], retry_after_accept: bool
) -> None:
    """IO-INV-102: not without the adapter's word, and never once anything was given."""
    replica = Replica(fails(Reason.INTERNAL, after=list(given)), speaks())  # type: ignore[arg-type]  # a table of updates
    async with running(replica) as targets, backend(targets) as subject:
        failed = await failure_of(subject, retry_after_accept=retry_after_accept)
    assert failed.reason is Reason.SEGMENT_FAILED
    assert replica.attempts == [1]


async def test_retries_after_acceptance_are_counted() -> None:
    """WEIR-134: an accepted segment that keeps failing fails, it does not loop."""
    replica = Replica(fails(Reason.INTERNAL, after=whole()[:1]))
    async with running(replica) as targets, backend(targets, retries_after_accept=2) as subject:
        failed = await failure_of(subject, retry_after_accept=True)
    assert failed.reason is Reason.SEGMENT_FAILED
    assert replica.attempts == [1, 2, 3]


async def test_a_further_attempt_in_another_format_is_refused() -> None:
    """WEIR-120: the client has been told the first format."""
    other = AudioFormat(AudioEncoding.PCM, 16000)
    replica = Replica(fails(Reason.INTERNAL, after=whole()[:1]), speaks(whole(format=other)))
    async with running(replica) as targets, backend(targets) as subject:
        failed = await failure_of(subject, retry_after_accept=True)
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.INTERNAL)
    assert replica.attempts == [1, 2]


async def test_a_replica_that_stalls_after_acceptance_fails_the_segment() -> None:
    """WEIR-133: nothing waits for ever, and the stalled call is cancelled."""
    held = Held(first=whole()[:2])
    async with running(Replica(held)) as targets, backend(targets, stall_timeout_s=0.2) as subject:
        async with asyncio.timeout(LIMITS_S):
            failed = await failure_of(subject)
        async with asyncio.timeout(PATIENCE_S):
            await held.cancelled.wait()
    assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.DEADLINE_EXCEEDED)


async def test_closing_the_generator_cancels_the_call_once() -> None:
    """WEIR-133: the replica is told within the shortest time, and only once."""
    held = Held(first=whole()[:2])
    async with running(Replica(held)) as targets, backend(targets) as subject:
        updates = subject.synthesize(REQUEST, deadline_s=30)
        assert isinstance((await anext(updates)).update, Accepted)
        assert isinstance((await anext(updates)).update, AudioChunk)
        await updates.aclose()
        async with asyncio.timeout(PATIENCE_S):
            await held.cancelled.wait()
        assert [outstanding for _, _, outstanding in subject.replicas()] == [0]
    assert held.cancellations == 1


async def test_cancelling_the_reader_cancels_the_call_and_stays_a_cancellation() -> None:
    """WEIR-133, WEIR-204: CancelledError is passed on as what it is."""
    held = Held(first=whole()[:1])
    async with running(Replica(held)) as targets, backend(targets) as subject:
        reading = asyncio.create_task(collect(subject))
        async with asyncio.timeout(PATIENCE_S):
            await held.holding.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await held.cancelled.wait()
    assert held.cancellations == 1


async def test_cancelling_between_attempts_begins_no_further_one() -> None:
    """WEIR-133: a wait for the next attempt ends with its reader."""
    waiting = asyncio.Event()
    time = FakeTime()

    async def wait_for_ever(delay_s: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    replica = Replica(fails(Reason.OVERLOADED))
    timing = replace(time.timing(), sleep=wait_for_ever)
    async with running(replica) as targets, backend(targets, timing=timing) as subject:
        reading = asyncio.create_task(collect(subject))
        async with asyncio.timeout(PATIENCE_S):
            await waiting.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
    assert replica.attempts == [1]


async def test_closing_the_backend_fails_open_segments_as_shutting_down() -> None:
    """WEIR-133: the reader's task was not cancelled, so it must not look cancelled."""
    held = Held(first=whole()[:1])
    async with running(Replica(held)) as targets, backend(targets) as subject:
        failing = asyncio.create_task(failure_of(subject))
        async with asyncio.timeout(PATIENCE_S):
            await held.holding.wait()
            await subject.aclose()
            failed = await failing
        later = await failure_of(subject)
    assert (failed.reason, later.reason) == (Reason.SHUTTING_DOWN, Reason.SHUTTING_DOWN)


async def test_a_segment_waits_for_the_first_replica_to_come() -> None:
    """WEIR-132: none is chosen before it has declared itself; the first one is used at once."""
    replica = Replica()
    async with running(replica) as targets:
        capabilities, replica.capabilities = replica.capabilities, None
        async with backend(targets, ready=0) as subject:
            speaking = asyncio.create_task(collect(subject))
            await asyncio.sleep(0)
            replica.capabilities = capabilities
            async with asyncio.timeout(PATIENCE_S):
                updates = await speaking
    assert isinstance(updates[-1].update, Outcome)


async def test_without_any_replica_the_deadline_ends_the_wait() -> None:
    """WEIR-132: none reachable is BACKEND_UNAVAILABLE, which the client may try again."""
    async with backend(("127.0.0.1:1",), ready=0) as subject:
        with pytest.raises(WeirError) as caught:
            await collect(subject, deadline_s=0.05)
    assert caught.value.failure.reason is Reason.BACKEND_UNAVAILABLE
