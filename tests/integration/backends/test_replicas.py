"""Several replicas as one backend, against real gRPC servers: what they offer, who is chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from contracts.capabilities import TaskType, Voice
from contracts.errors import Reason, WeirError
from contracts.modality import Accepted
from services.edge.backends.settings import TtsBackendSettings
from services.edge.backends.targets import Address, Target
from services.edge.backends.tts import TtsBackend
from tests.integration.backends.scripted import (
    CAPABILITIES,
    COMMITMENT,
    PATIENCE_S,
    Held,
    Replica,
    fails,
    running,
    speaks,
    whole,
)
from tests.integration.backends.support import QUIET_POOL, REQUEST, FakeTime, backend, collect


async def until(condition: Callable[[], bool], subject: TtsBackend) -> None:
    """Ask the replicas again and wait until `condition` of the backend holds."""
    subject.refresh()
    assert await subject.wait_until(condition, PATIENCE_S)


async def test_replicas_that_differ_offer_what_all_of_them_declare() -> None:
    """WEIR-131: no session may rely on what only some replicas can do."""
    larger = replace(
        CAPABILITIES,
        voices=(*CAPABILITIES.voices, Voice("cy", ("English",))),
        languages=("English", "Chinese", "German"),
        task_types=(TaskType.CUSTOM_VOICE, TaskType.VOICE_DESIGN),
        options=frozenset({"instructions"}),
        word_times=True,
        max_text_characters=2000,
    )
    smaller = replace(CAPABILITIES, text_commitment=())
    replicas = (Replica(capabilities=larger), Replica(capabilities=smaller))
    async with running(*replicas) as targets, backend(targets) as subject:
        assert subject.capabilities() == smaller


async def test_replicas_with_nothing_in_common_offer_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-131: and the log says so once."""
    other = replace(CAPABILITIES, voices=(Voice("zoe", ("English",)),), default_voice="zoe")
    replicas = (Replica(), Replica(capabilities=other))
    async with running(*replicas) as targets, backend(targets) as subject:
        assert subject.capabilities() is None
        assert subject.capabilities() is None
    assert [r.getMessage() for r in caplog.records].count("replicas_share_nothing") == 1


async def test_capabilities_are_those_of_the_replicas_that_can_be_reached() -> None:
    """WEIR-131: one that is lost no longer narrows the offer; with the last one it is gone."""
    narrow = replace(CAPABILITIES, languages=("English",))
    first, second = Replica(), Replica(capabilities=narrow)
    async with running(first, second) as targets, backend(targets) as subject:
        assert subject.capabilities() == narrow
        await second.server.stop(None)
        await until(lambda: subject.capabilities() == CAPABILITIES, subject)
        await first.server.stop(None)
        await until(lambda: subject.capabilities() is None, subject)
        back = Replica(capabilities=narrow)
        await back.start(first.port)
        await until(lambda: subject.capabilities() == narrow, subject)
        await back.server.stop(None)


async def test_a_replica_that_is_still_loading_is_not_offered() -> None:
    """WEIR-132: it is reached, but has not declared itself."""
    loading = Replica(capabilities=None)
    async with running(loading) as targets, backend(targets, ready=0) as subject:
        await loading.asked_times(2)
        assert subject.capabilities() is None


async def test_a_profile_that_the_edge_lacks_is_ignored_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-311: the rest of the declaration stands."""
    newer = replace(COMMITMENT, profile="zh_en_special_v9")
    replica = Replica(capabilities=replace(CAPABILITIES, text_commitment=(newer, COMMITMENT)))
    with caplog.at_level(logging.WARNING, "services.edge.backends"):
        async with running(replica) as targets, backend(targets) as subject:
            assert subject.capabilities() == CAPABILITIES
            for _ in range(2):  # the answer to the first is read before the second is asked
                subject.refresh()
                await replica.asked_times(replica.asked + 1)
    ignored = [r for r in caplog.records if r.getMessage() == "profile_ignored"]
    assert [r.__dict__["weir_fields"]["profile"] for r in ignored] == ["zh_en_special_v9"]


async def test_a_declaration_that_contradicts_itself_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-130: such a replica takes no segment."""
    replica = Replica()
    broken = replace(CAPABILITIES)
    object.__setattr__(broken, "default_voice", "nobody")
    replica.capabilities = broken
    async with running(replica) as targets, backend(targets, ready=0) as subject:
        await replica.asked_times(3)
        assert subject.capabilities() is None
    assert [r.getMessage() for r in caplog.records].count("replica_refused") == 1


async def test_a_segment_goes_to_the_replica_with_the_fewest_outstanding_requests() -> None:
    """WEIR-132: busy ones are passed over, and equals take turns."""
    slow = [Replica(Held(first=whole()[:1])) for _ in range(3)]
    async with running(*slow) as targets, backend(targets) as subject, AsyncExitStack() as open_:
        for turn in range(6):
            updates = subject.synthesize(REQUEST, deadline_s=30)
            open_.push_async_callback(updates.aclose)
            assert isinstance((await anext(updates)).update, Accepted)
            counts = sorted(outstanding for _, _, outstanding in subject.replicas())
            assert sum(counts) == turn + 1
            assert counts[-1] - counts[0] <= 1
    assert [len(replica.requests) for replica in slow] == [2, 2, 2]


async def test_a_replica_that_failed_is_avoided_for_a_while_and_then_used_again() -> None:
    """WEIR-132: outlier backoff ends by time alone."""
    time = FakeTime()
    flaky, steady = Replica(fails(Reason.OVERLOADED)), Replica()
    async with running(flaky, steady) as targets, backend(targets, timing=time.timing()) as subject:
        await collect(subject)
        assert (flaky.attempts, steady.attempts) == ([1], [2])
        time.now += 0.001  # the refusal is fresh, so the busier and later one is preferred
        await collect(subject)
        assert len(flaky.requests) == 1
        time.now += 60.0
        await collect(subject)
        assert len(flaky.requests) == 2


async def test_a_replica_that_takes_a_segment_again_is_no_outlier_any_more() -> None:
    """WEIR-132: it need not wait until its time is over."""
    pool = replace(QUIET_POOL, outlier_backoff_first_s=5.0)
    first = Replica(fails(Reason.OVERLOADED), speaks())
    second = Replica(speaks(), fails(Reason.OVERLOADED), speaks())
    timing = FakeTime().timing()
    async with running(first, second) as targets, backend(targets, pool=pool, timing=timing) as it:
        await collect(it)
        await collect(it)
        assert (first.attempts, second.attempts) == ([1, 2], [2, 1])
        await collect(it)
    assert (len(first.requests), len(second.requests)) == (3, 2)


async def test_a_replica_that_loses_a_segment_is_asked_at_once_whether_it_is_still_there() -> None:
    """WEIR-132: what is offered does not wait for the next interval to become true."""
    replica = Replica()
    async with running(replica) as targets, backend(targets) as subject:
        await replica.server.stop(None)
        with pytest.raises(WeirError):
            await collect(subject, deadline_s=0.2)
        assert await subject.wait_until(lambda: subject.capabilities() is None, PATIENCE_S)


async def test_names_are_looked_up_again_and_replicas_come_and_go() -> None:
    """WEIR-132: a new address is used, one that is gone finishes what it has and no more."""
    held = Held(first=whole()[:1], then=whole()[1:])
    old, new = Replica(held), Replica()
    async with running(old, new):
        addresses: list[tuple[Address, ...]] = [(Address("127.0.0.1", old.port),)]

        async def lookup(target: Target) -> tuple[Address, ...]:
            assert target == Target("tts", 50051)
            if not addresses[-1]:
                raise OSError("the name service is away")
            return addresses[-1]

        async with TtsBackend(
            TtsBackendSettings(targets=("tts:50051",)),
            known_profiles=(),
            pool=QUIET_POOL,
            resolve=lookup,
        ) as subject:
            assert await subject.wait_ready(PATIENCE_S)
            speaking = subject.synthesize(REQUEST, deadline_s=30)
            assert isinstance((await anext(speaking)).update, Accepted)
            addresses.append((Address("127.0.0.1", new.port),))
            await until(lambda: [a.port for a, _, _ in subject.replicas()] == [new.port], subject)
            await until(lambda: subject.replicas()[0][1], subject)
            addresses.append(())  # nobody answers: what is known stays
            subject.refresh()
            await collect(subject)
            held.release.set()
            rest = [update.update async for update in speaking]
    assert rest == whole()[1:]
    assert (len(old.requests), len(new.requests)) == (1, 1)
