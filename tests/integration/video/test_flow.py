"""How far a generation runs ahead, and what it waits for."""

from __future__ import annotations

import asyncio

import pytest
from weir.media.v1 import video_pb2 as media_pb2
from weir.video.v1 import video_pb2

from services.video.adapters.base import Frames
from services.video.adapters.pattern import PatternLatents, PatternState
from tests.integration.video.serving import Viewer, serving, until, viewing
from tests.unit.video.support import (
    PATIENCE_S,
    SteppedAdapter,
    config,
    control,
    credit,
    pattern,
    sample_of,
)

CREDIT = video_pb2.WAIT_REASON_CREDIT
PAUSE = video_pb2.WAIT_REASON_PAUSE
PLAYBACK = video_pb2.WAIT_REASON_PLAYBACK


def at_rate(frames_per_second: int) -> media_pb2.VideoFormat:
    """Return an output format with this rate."""
    return media_pb2.VideoFormat(
        container=media_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4,
        frame_rate_numerator=frames_per_second,
        frame_rate_denominator=1,
    )


async def waits_for(viewer: Viewer, reason: int) -> None:
    """Read until the generation waits for `reason`."""
    await viewer.until("waiting", lambda part: part.reason == reason)


@pytest.mark.parametrize("credits", [1, 2, 5])
async def test_credits_bound_how_far_generation_runs_ahead(credits: int) -> None:
    """WEIR-222: so many chunks and no step more; then it says what it waits for."""
    adapter = SteppedAdapter()
    adapter.let_all()
    async with (
        serving(adapter, UNSENT_CHUNKS="100") as replica,
        viewing(replica.stub, config(endless=True, credits=credits)) as viewer,
    ):
        await waits_for(viewer, CREDIT)
        assert len(viewer.media) == len(adapter.chunks) == credits
        assert len(adapter.steps) == 4 * credits
        await viewer.send(credit(2))
        await waits_for(viewer, CREDIT)
        assert len(viewer.media) == len(adapter.chunks) == credits + 2


async def test_a_reader_that_stalls_is_not_run_ahead_of_whatever_credits_it_gave() -> None:
    """WEIR-227, WEIR-060: the connection's window, what may wait, and three in the works."""
    adapter = SteppedAdapter(width=640, height=384, steps=1)
    adapter.let_all()
    async with serving(adapter, UNSENT_CHUNKS="2", H264_CRF="1") as replica:
        async with viewing(replica.stub, config(endless=True, credits=10_000)) as viewer:
            # The window of the connection holds a few dozen KiB; then nothing is made any more.
            while await asyncio.to_thread(adapter.inside.acquire, True, 0.5):
                pass
            made = len(adapter.chunks)
            for _ in range(made + 5):
                await viewer.until("chunk")
            on_the_connection = viewer.payloads[: made - (2 + 3)]
            assert sum(map(len, on_the_connection)) < 128 * 1024
            assert len(adapter.chunks) > made
        await replica.idle()


async def test_chunk_k_is_coded_while_the_next_is_denoised_and_no_third_is_begun() -> None:
    """WEIR-234: one denoised chunk waits between the two threads at most."""
    adapter = SteppedAdapter(steps=1)
    decoding, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    decode = adapter.decode

    def slow(state: PatternState, latents: PatternLatents) -> Frames:
        loop.call_soon_threadsafe(decoding.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(PATIENCE_S)
        return decode(state, latents)

    adapter.decode = slow  # type: ignore[method-assign]  # holds the encoding thread
    adapter.let_all()
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(endless=True, credits=9)) as viewer,
    ):
        await asyncio.wait_for(decoding.wait(), PATIENCE_S)
        # Chunk 0 is being decoded, 1 has been denoised and waits; 2 must not be begun.
        await until(lambda: len(adapter.chunks) == 2)
        await asyncio.to_thread(adapter.inside.acquire, True, 0.2)
        await asyncio.to_thread(adapter.inside.acquire, True, 0.2)
        assert not await asyncio.to_thread(adapter.inside.acquire, True, 0.3)
        assert len(adapter.steps) == 2
        go_on.set()
        await waits_for(viewer, CREDIT)
        assert len(viewer.media) == 9
    assert adapter.overlaps == []


async def test_every_kind_of_call_has_its_own_thread() -> None:
    """WEIR-233, WEIR-234: adapters need not be re-entrant."""
    adapter = SteppedAdapter()
    adapter.let_all()
    async with serving(adapter, MAX_SESSIONS="3") as replica:

        async def one(seed: int) -> None:
            async with viewing(replica.stub, config(seed=seed, num_frames=20)) as viewer:
                await viewer.watch()

        await asyncio.gather(*(one(seed) for seed in range(3)))
        await replica.idle()
    assert adapter.threads == {
        "start": {"generation"},
        "next_chunk": {"generation"},
        "decode": {"encoding"},
        "encode_prompt": {"prompts"},
        "close": {"closing"},
    }
    assert adapter.overlaps == []
    assert sorted(adapter.closed) == [0, 1, 2]


async def test_pause_stands_still_at_a_boundary_and_resume_goes_on() -> None:
    """WEIR-230: the chunk in progress comes before `paused`, and no media before `resumed`."""
    adapter = SteppedAdapter()
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(endless=True, credits=50)) as viewer,
    ):
        assert await asyncio.to_thread(adapter.inside.acquire, True, PATIENCE_S)
        await viewer.send(control("pause"))
        adapter.let(3)
        assert await asyncio.to_thread(adapter.inside.acquire, True, PATIENCE_S)
        adapter.let_all()
        await viewer.until("paused")
        await waits_for(viewer, PAUSE)
        made, before = len(viewer.media), len(viewer.received)
        assert made == len(adapter.chunks)
        # Paused already: answered at once, and credit changes nothing.
        await viewer.send(control("pause"), credit(5), control("pause"))
        await viewer.until("paused")
        await viewer.until("paused")
        assert len(viewer.media) == made == len(adapter.chunks)
        await viewer.send(control("resume"))
        await viewer.until("resumed")
        assert "chunk" not in viewer.kinds[before:]
        await viewer.until("chunk")
        # Not paused: a resume is answered all the same.
        await viewer.send(control("resume"), control("stop"))
        await viewer.until("resumed")
        await viewer.until("outcome")


async def test_a_resume_before_the_boundary_answers_the_pause_first() -> None:
    """WEIR-230: every pause and every resume has its answer, in order."""
    adapter = SteppedAdapter()
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(endless=True)) as viewer,
    ):
        assert await asyncio.to_thread(adapter.inside.acquire, True, PATIENCE_S)
        await viewer.send(control("pause"), control("resume"))
        await viewer.until("resumed")
        assert [kind for kind in viewer.kinds if kind != "progress"] == [
            "accepted",
            "paused",
            "resumed",
        ]
        adapter.let_all()
        await viewer.until("chunk")


async def test_a_paused_generation_can_be_stopped() -> None:
    """WEIR-230: nothing more is made; the trailer and the outcome come."""
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(endless=True, credits=1)) as viewer,
    ):
        await waits_for(viewer, CREDIT)
        await viewer.send(control("pause"))
        await viewer.until("paused")
        await viewer.send(control("stop"))
        outcome = await viewer.until("outcome")
    assert outcome.stopped
    assert len(viewer.media) == 1


async def test_realtime_leads_the_reported_position_by_so_much() -> None:
    """WEIR-223: chunks of 3 and 4 frames at 4 frames a second; a lead of 2 seconds."""
    first = config(
        endless=True,
        credits=100,
        pace=video_pb2.PACE_REALTIME,
        lead_seconds=2.0,
        output=at_rate(4),
    )
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, first) as viewer,
    ):
        # 3 frames end at 0.75 s, 7 at 1.75 s; 11 would end at 2.75 s.
        await waits_for(viewer, PLAYBACK)
        await viewer.send(control("playback", position_seconds=0.0))
        assert len(viewer.media) == 2
        await viewer.send(control("playback", position_seconds=0.75))
        await waits_for(viewer, PLAYBACK)
        assert len(viewer.media) == 3
        await viewer.send(control("playback", position_seconds=3.75))
        await waits_for(viewer, PLAYBACK)
        assert len(viewer.media) == 6
        await viewer.send(control("playback", position_seconds=3.75))
        await viewer.send(control("stop"))
        await viewer.until("outcome")
        assert len(viewer.media) == 6


async def test_realtime_follows_the_clock_until_there_is_a_report() -> None:
    """WEIR-223: with no lead at all one chunk is ahead; 24 chunks of 4 frames last 4 seconds."""
    first = config(
        num_frames=27,
        credits=100,
        pace=video_pb2.PACE_REALTIME,
        lead_seconds=0.0,
        output=at_rate(24),
    )
    loop = asyncio.get_running_loop()
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, first) as viewer,
    ):
        await viewer.until("chunk")
        begun, lateness = loop.time(), []
        for index in range(1, 7):
            made = await viewer.until("chunk")
            assert made.video.generation_chunk_index == index
            lateness.append(loop.time() - begun - (made.pts_seconds - 1 / 24))
        assert min(lateness) > -0.02
        await viewer.until("outcome")


async def test_free_pace_does_not_care_about_playback() -> None:
    """WEIR-223: a report is only checked."""
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(num_frames=100, credits=100)) as viewer,
    ):
        await viewer.send(control("playback", position_seconds=0.0))
        await viewer.until("outcome")
    assert PLAYBACK not in [r.waiting.reason for r in viewer.received]


async def test_signs_of_life_are_rare_and_true() -> None:
    """WEIR-230: at most one progress a second, with the steps that are done."""
    adapter = SteppedAdapter(steps=100)
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(num_frames=3)) as viewer,
    ):
        adapter.let(2)
        progress = await viewer.until("progress")
        assert (progress.generation_chunk_index, progress.steps) == (0, 1)
        adapter.let_all()
        await viewer.until("outcome")
        assert viewer.kinds.count("progress") <= 2
        assert sample_of(replica.metrics, "chunk_generation_seconds_count") == 1
        assert sample_of(replica.metrics, "time_to_first_frame_seconds_count") == 1
        assert sample_of(replica.metrics, "real_time_factor_count") == 1
        assert sample_of(replica.metrics, "video_seconds_total") == pytest.approx(3 / 24)
