"""Clocks, readers that stall and the end of the edge, with real processes."""

from __future__ import annotations

import pytest

from tests.integration.edge.suite import http_get, metric
from tests.integration.edge_video.client import watching
from tests.integration.edge_video.suite import (
    chunks_made,
    start_video,
    start_video_edge,
    until_idle,
)
from tests.integration.faults.memory import Growth
from tests.processes import ServiceProcess, StartProcess

MIB = 1024 * 1024


async def test_a_viewer_that_stops_reading_stops_generation(start_process: StartProcess) -> None:
    """WEIR-175, WEIR-178: through credits; memory stays bounded, and the slot is freed at last."""
    replica = await start_video(start_process, "width=1280,height=720")
    edge = await start_video_edge(start_process, replica, EDGE_SEND_DEADLINE_S="3")
    async with watching(edge.address, max_queue=1) as client:
        await client.start(endless=True)
        await client.chunk()
        client.socket.transport.pause_reading()
        growth = Growth([edge])
        await growth.until(edge, "peer_stalled")  # for whole seconds nothing was taken
        made, sent = await chunks_made(replica), await metric(edge, "weir_edge_video_chunks_total")
        assert sent + 1 <= made <= sent + 2
        client.socket.transport.abort()
    assert growth.most[0] < 16 * MIB
    await until_idle(replica)


async def test_a_start_that_does_not_come_is_not_waited_for(
    start_process: StartProcess, replica: ServiceProcess
) -> None:
    """WEIR-169: 1008, and a ping does not help."""
    edge = await start_video_edge(start_process, replica, EDGE_VIDEO_START_TIMEOUT_S="0.3")
    async with watching(edge.address) as client:
        await client.pong()
        await client.error("idle_timeout")
        assert (await client.closed())[0] == 1008


async def test_a_generation_without_progress_is_given_up(start_process: StartProcess) -> None:
    """WEIR-169: a model that hangs in a step; the slot is the replica's to free."""
    replica = await start_video(start_process, "steps=1,step_time_s=3")
    edge = await start_video_edge(start_process, replica, EDGE_VIDEO_STALL_TIMEOUT_S="0.5")
    async with watching(edge.address) as client:
        await client.start()
        seen, code = await client.finish()
    assert code == 1011
    assert seen.terminal is not None
    assert seen.terminal["code"] == "deadline_exceeded"


@pytest.mark.parametrize("report", [False, True])
async def test_a_paused_video_needs_reports(
    start_process: StartProcess, replica: ServiceProcess, report: bool
) -> None:
    """WEIR-169: without one the viewer counts as gone; the watchdog stands still meanwhile."""
    edge = await start_video_edge(
        start_process, replica, EDGE_VIDEO_GATED_TIMEOUT_S="0.6", EDGE_VIDEO_STALL_TIMEOUT_S="0.5"
    )
    async with watching(edge.address) as client:
        await client.start(endless=True)
        await client.send("session.pause")
        await client.until("session.paused")
        if report:
            await client.send("session.playback", position_seconds=0)
            await client.send("session.resume")
            await client.until("session.resumed")
            await client.chunk()
            await client.send("session.stop")
        seen, code = await client.finish()
    assert seen.terminal is not None
    assert code == (1000 if report else 1008)
    assert seen.terminal.get("code") == (None if report else "stall_timeout")


async def test_a_session_at_its_cap_ends_as_with_a_stop(
    start_process: StartProcess, replica: ServiceProcess
) -> None:
    """WEIR-169: with the trailer, and 1000."""
    edge = await start_video_edge(start_process, replica, EDGE_VIDEO_SESSION_S="0.5")
    async with watching(edge.address) as client:
        await client.start(endless=True)
        seen, code = await client.finish()
    assert code == 1000
    assert seen.chunks[-1]["kind"] == "trailer"
    assert seen.terminal is not None
    assert seen.terminal["stopped"] is True


async def test_a_drain_ends_long_videos_cleanly_and_lets_short_ones_end(
    start_process: StartProcess, replica: ServiceProcess
) -> None:
    """WEIR-181: nothing of a short one is lost; a long one has its trailer."""
    edge = await start_video_edge(start_process, replica, EDGE_VIDEO_DRAIN_S="1.5")
    async with (
        watching(edge.address) as short,
        watching(edge.address) as long,
        watching(edge.address) as unstarted,
    ):
        await short.start(num_frames=57)
        await long.start(endless=True)
        await long.chunk()
        edge.terminate()
        await edge.event("draining")
        await unstarted.error("shutting_down")
        assert (await unstarted.closed())[0] == 1012
        seen, code = await short.finish()
        assert (seen.frames, code) == (57, 1000)
        seen, code = await long.finish()
        assert code == 1012
        assert seen.chunks[-1]["kind"] == "trailer"
    assert await edge.exited() == 0


async def test_one_connection_too_many_is_refused(
    start_process: StartProcess, replica: ServiceProcess
) -> None:
    """WEIR-160: told when to come back; both endpoints count together."""
    edge = await start_video_edge(start_process, replica, EDGE_MAX_SESSIONS="1")
    async with watching(edge.address), watching(edge.address) as second:
        await second.error("overloaded")
        assert (await second.closed())[0] == 1013
    assert await metric(edge, "weir_edge_video_sessions_refused_total") == 1


async def test_a_foreign_page_may_not_watch(edge: str) -> None:
    """WEIR-170: the doorway is the same for every endpoint."""
    answer = await http_get(edge, "/v1/realtime/video", origin="https://evil.example")
    assert answer.status == 403
