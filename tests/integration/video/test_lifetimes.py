"""What ends a generation, what its end frees, and whom it leaves alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from weir.video.v1 import video_pb2_grpc

from contracts.errors import GrpcCode, Reason
from services.runtime.channel import open_channel
from services.video.adapters.base import Frames, ModelUnavailableError
from services.video.adapters.pattern import PatternLatents, PatternState
from services.video.process import SERVICE
from tests.integration.video.serving import (
    Replica,
    Viewer,
    connected,
    failure_in,
    make_process,
    refusal_of,
    serving,
    until,
    viewing,
)
from tests.unit.video.support import (
    PATIENCE_S,
    SteppedAdapter,
    close_to,
    colour_in,
    config,
    control,
    credit,
    frames_in,
    interaction,
    number_of,
    pattern,
    sample_of,
)


async def inside_a_step(adapter: SteppedAdapter) -> None:
    """Wait until a generation is inside a denoising step."""
    assert await asyncio.to_thread(adapter.inside.acquire, True, PATIENCE_S)


@asynccontextmanager
async def denoising(adapter: SteppedAdapter, replica: Replica, seed: int) -> AsyncIterator[Viewer]:
    """View an endless video that is inside its first denoising step."""
    async with viewing(replica.stub, config(endless=True, seed=seed)) as viewer:
        await inside_a_step(adapter)
        yield viewer


async def test_a_cancelled_call_frees_its_slot_within_the_step_it_is_in() -> None:
    """WEIR-235, WEIR-239: no step is begun after the cancellation; the state is closed once."""
    adapter = SteppedAdapter()
    async with serving(adapter) as replica:
        async with denoising(adapter, replica, 1) as viewer:
            viewer.call.cancel()
            # The server knows when its own call has ended; the thread is still inside its step.
            await until(lambda: sample_of(replica.metrics, "cancellations_total"))
            assert replica.busy == 1
            assert adapter.closed == []
            adapter.let(1)
            await replica.idle()
        assert len(adapter.steps) == 1
        assert adapter.closed == [1]
        assert sample_of(replica.metrics, "cancel_latency_seconds_count") == 1
        assert sample_of(replica.metrics, "wasted_generation_seconds_total") > 0
        assert sample_of(replica.metrics, "busy_sessions") == 0


async def test_a_connection_that_is_lost_ends_its_generation() -> None:
    """WEIR-239: a client that vanishes frees its slot like one that cancels."""
    adapter = SteppedAdapter()
    async with serving(adapter) as replica, AsyncExitStack() as lost:
        assert replica.process.address is not None
        channel = open_channel(replica.process.address)
        stub: Any = video_pb2_grpc.VideoServiceStub(channel)
        await lost.enter_async_context(viewing(stub, config(endless=True, seed=1)))
        await inside_a_step(adapter)
        await channel.close()
        await until(lambda: sample_of(replica.metrics, "cancellations_total"))
        adapter.let(1)
        await replica.idle()
        assert len(adapter.steps) == 1
        assert adapter.closed == [1]


async def test_who_waits_for_a_turn_leaves_at_once() -> None:
    """WEIR-235: a generation that is not at work frees its slot while another one denoises."""
    adapter = SteppedAdapter()
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(endless=True, seed=1, credits=1)) as first,
    ):
        adapter.let(4)
        await first.until("waiting")
        while adapter.inside.acquire(blocking=False):
            pass
        async with denoising(adapter, replica, 2) as second:
            await first.send(credit())
            await first.settled()
            first.call.cancel()
            await until(lambda: replica.busy == 1)
            assert adapter.closed == [1]
            assert adapter.steps == [1, 1, 1, 1, 2]
            adapter.let_all()
            await second.send(control("stop"))
            assert failure_in(await second.watch()) is None


async def test_who_waits_to_be_coded_leaves_at_once() -> None:
    """WEIR-235: a chunk that waits behind another one's on the encoding thread is dropped."""
    adapter = SteppedAdapter(steps=1)
    entered, go_on = threading.Event(), threading.Event()
    decode = adapter.decode

    def slow(state: PatternState, latents: PatternLatents) -> Frames:
        if (state.generation.seed, latents.chunk) == (1, 1):
            entered.set()
            assert go_on.wait(PATIENCE_S)
        return decode(state, latents)

    adapter.decode = slow  # type: ignore[method-assign]  # holds the encoding thread
    adapter.let_all()
    async with serving(adapter) as replica:
        async with (
            viewing(replica.stub, config(seed=1, num_frames=7, credits=1)) as first,
            viewing(replica.stub, config(seed=2, num_frames=7, credits=1)) as second,
        ):
            await first.until("waiting")
            await second.until("waiting")
            await first.send(credit())
            assert await asyncio.to_thread(entered.wait, PATIENCE_S)
            await second.send(credit())
            await until(lambda: (2, 1) in adapter.chunks)
            second.call.cancel()
            await until(lambda: replica.busy == 1)
            assert adapter.closed == [2]
            go_on.set()
            assert failure_in(await first.watch()) is None
        await replica.idle()


async def test_one_abort_never_touches_another_generation() -> None:
    """WEIR-236: three run, the middle one is cut off; the others show every frame they would."""
    adapter = pattern(step_time_s=0.002)
    async with serving(adapter, MAX_SESSIONS="3") as replica:

        async def whole(colour: str, seed: int) -> Viewer:
            first = config(colour, seed=seed, num_frames=43)
            async with viewing(replica.stub, first) as viewer:
                await viewer.watch()
                assert await viewer.end() is None
            return viewer

        async def cut_off() -> None:
            async with viewing(replica.stub, config(endless=True)) as viewer:
                await viewer.until("chunk")
                viewer.call.cancel()

        red, _, blue = await asyncio.gather(whole("#f00000", 1), cut_off(), whole("#0000f0", 3))
        await replica.idle()
    for viewer, colour in ((red, (240, 0, 0)), (blue, (0, 0, 240))):
        frames = frames_in(viewer.payloads)
        assert [number_of(frame) for frame in frames] == list(range(43))
        assert all(close_to(colour_in(frame), colour) for frame in frames)


FAULTS: list[dict[str, Any]] = [{"fail_chunk": 1}, {"fail_decode": 1}]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: next(iter(fault)))
async def test_a_fault_ends_the_generation_it_is_in_and_no_other(fault: dict[str, Any]) -> None:
    """WEIR-236: INTERNAL in-band and as status, with what was made before; the rest goes on."""
    async with serving(pattern(fail_times=1, **fault)) as replica:

        async def one() -> tuple[Any, Any, Viewer]:
            async with viewing(replica.stub, config(num_frames=11)) as viewer:
                outcome = await viewer.watch()
                return failure_in(outcome), await viewer.end(), viewer

        ended = await asyncio.gather(one(), one())
        await replica.idle()
        again = await one()
        assert again[0] is None
        assert sample_of(replica.metrics, "failures_total", reason="INTERNAL") == 1
        assert sample_of(replica.metrics, "completions_total") == 2
    (failed,) = [entry for entry in ended if entry[0] is not None]
    (well,) = [entry for entry in ended if entry[0] is None]
    assert failed[0].reason is Reason.INTERNAL
    assert failed[0] == failed[1]
    assert "told to fail" not in failed[0].message
    assert len(failed[2].media) == 1
    assert "video_completed" not in failed[2].kinds
    assert len(well[2].media) == 3


async def test_an_encoder_that_gives_nothing_fails_the_generation() -> None:
    """WEIR-232: a payload that no message could hold is a failure and never sent."""
    async with (
        serving(pattern(), MAX_RESPONSE_BYTES="65537") as replica,
        viewing(replica.stub) as viewer,
    ):
        outcome = await viewer.watch()
        failed = failure_in(outcome)
        assert failed is not None
        assert failed.reason is Reason.INTERNAL
        assert viewer.chunks == []
        assert await viewer.end() == failed


async def test_generations_take_turns_chunk_by_chunk() -> None:
    """WEIR-231: of three that could all go on, none gets two chunks while another waits."""
    adapter = SteppedAdapter(steps=1)
    limits = {"MAX_SESSIONS": "3", "UNSENT_CHUNKS": "100"}
    async with serving(adapter, **limits) as replica, AsyncExitStack() as stack:
        viewers = []
        for seed in range(3):
            first = config(seed=seed, num_frames=43, credits=1)
            viewer = await stack.enter_async_context(viewing(replica.stub, first))
            adapter.let(1)
            await viewer.until("waiting")
            viewers.append(viewer)
        for viewer in viewers:
            await viewer.send(credit(100))
            await viewer.settled()
        adapter.let_all()
        await asyncio.gather(*(viewer.watch() for viewer in viewers))
    order = [seed for seed, chunk in adapter.chunks if chunk]
    assert len(order) == 3 * 10
    for at in range(len(order) - 2):
        assert sorted(order[at : at + 3]) == [0, 1, 2], order


async def test_beyond_its_slots_a_replica_refuses_at_once_with_a_delay() -> None:
    """WEIR-228: RESOURCE_EXHAUSTED with RetryInfo; a slot that is free can be had."""
    adapter = SteppedAdapter()
    async with serving(adapter, MAX_SESSIONS="1", RETRY_DELAY_MS="250") as replica:
        async with denoising(adapter, replica, 1):
            refused = await refusal_of(replica.stub)
            assert refused.reason is Reason.OVERLOADED
            assert refused.code is GrpcCode.RESOURCE_EXHAUSTED
            assert refused.retry_after_ms == 250
            assert sample_of(replica.metrics, "refusals_total", reason="OVERLOADED") == 1
            assert sample_of(replica.metrics, "busy_sessions") == 1
        adapter.let_all()
        await replica.idle()
        async with viewing(replica.stub) as viewer:
            await viewer.watch()


async def test_who_hears_of_the_end_finds_the_slot_free() -> None:
    """WEIR-228: over and over with one slot, without a pause between."""
    async with serving(pattern(), MAX_SESSIONS="1") as replica:
        for _ in range(5):
            async with viewing(replica.stub, config(num_frames=3)) as viewer:
                await viewer.watch()
                assert replica.busy == 0


async def test_a_generation_lasts_only_so_long() -> None:
    """WEIR-239: DEADLINE_EXCEEDED in-band and as status."""
    async with (
        serving(pattern(), MAX_CALL_S="0.3") as replica,
        viewing(replica.stub, config(endless=True, credits=1)) as viewer,
    ):
        outcome = await viewer.until("outcome")
        failed = failure_in(outcome)
        assert failed is not None
        assert failed.reason is Reason.DEADLINE_EXCEEDED
        assert await viewer.end() == failed


async def test_a_reader_that_stalls_too_long_loses_its_slot() -> None:
    """WEIR-239: nobody holds a slot without reading."""
    adapter = pattern(width=640, height=384, steps=1)
    async with (
        serving(adapter, SEND_STALL_S="0.3", H264_CRF="1") as replica,
        viewing(replica.stub, config(endless=True, credits=100_000)),
    ):
        await until(
            lambda: sample_of(replica.metrics, "failures_total", reason="DEADLINE_EXCEEDED")
        )
        await replica.idle()


async def test_health_follows_the_model() -> None:
    """WEIR-067: NOT_SERVING and refused until loaded, and when the load fails."""
    process, _ = make_process(pattern(load_time_s=60.0))
    starting = asyncio.create_task(process.start())
    try:
        await until(lambda: process.address)
        assert process.address is not None
        async with open_channel(process.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
            assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        async with connected(process.address) as stub:
            refused = await refusal_of(stub)
        assert refused.reason is Reason.BACKEND_UNAVAILABLE
        assert not process.ready
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await process.close()
    failing, _ = make_process(pattern(fail_load=True))
    with pytest.raises(ModelUnavailableError):
        await failing.start()
    await failing.close()


async def test_a_model_is_unloaded_only_when_no_thread_is_inside_it() -> None:
    """WEIR-235: a prompt that is being encoded when the process closes is waited for."""
    adapter = SteppedAdapter(fail_marker="!")
    entered, go_on = threading.Event(), threading.Event()
    colour = adapter.encode_prompt

    def slow(text: str) -> tuple[float, float, float]:
        if text != "slow":
            return colour(text)
        with adapter.noted("encode_prompt"):
            entered.set()
            assert go_on.wait(PATIENCE_S)
            return (0.0, 0.0, 0.0)

    adapter.encode_prompt = slow  # type: ignore[method-assign]  # holds the prompt thread
    adapter.let_all()
    async with serving(adapter) as replica:
        async with viewing(replica.stub, config(endless=True, credits=1)) as viewer:
            await viewer.send(interaction("a", "slow"))
            assert await asyncio.to_thread(entered.wait, PATIENCE_S)
        await replica.idle()
        closing = asyncio.create_task(replica.process.close())
        asyncio.get_running_loop().call_later(0.3, go_on.set)
        await closing
    assert adapter.unloaded_during == frozenset()


class Mute(SteppedAdapter):
    """Declares event fields and reads none."""

    encode_event = None  # type: ignore[assignment]  # what a model that has none looks like


UNFIT = [
    (pattern(chunk_frames=1001), "chunks of 1001 frames"),
    (Mute(), "event fields"),
]


@pytest.mark.parametrize(("adapter", "told"), UNFIT)
async def test_a_model_that_cannot_be_served_is_refused_when_it_is_loaded(
    adapter: Any, told: str
) -> None:
    """WEIR-237: not when the first generation comes."""
    process, _ = make_process(adapter)
    with pytest.raises(ModelUnavailableError, match=told):
        await process.start()
    await process.close()


async def test_a_drain_lets_running_generations_finish_and_refuses_new_ones() -> None:
    """WEIR-068: nothing that was accepted is lost."""
    adapter = SteppedAdapter()
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(num_frames=11)) as viewer,
    ):
        draining = asyncio.create_task(replica.process.drain())
        await until(lambda: not replica.process.ready)
        refused = await refusal_of(replica.stub)
        assert refused.reason is Reason.SHUTTING_DOWN
        adapter.let_all()
        assert failure_in(await viewer.watch()) is None
        await viewer.end()
        await draining
    assert len(viewer.media) == 3


async def test_what_is_cut_short_is_told_why() -> None:
    """WEIR-080: SHUTTING_DOWN in-band and as status when the process closes."""
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(endless=True, credits=1)) as viewer,
    ):
        await viewer.until("waiting")
        closing = asyncio.create_task(replica.process.close())
        failed = failure_in(await viewer.until("outcome"))
        assert failed is not None
        assert failed.reason is Reason.SHUTTING_DOWN
        assert await viewer.end() == failed
        await closing
