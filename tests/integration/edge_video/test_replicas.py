"""Replicas that are away, full, killed or failing, and what the client is told."""

from __future__ import annotations

from tests.integration.edge.suite import http_get, launch_edge, start_edge, start_tts
from tests.integration.edge_video.client import watching
from tests.integration.edge_video.suite import (
    NOWHERE,
    start_video,
    start_video_edge,
    until_idle,
)
from tests.processes import ServiceProcess, StartProcess

SLOW = "step_time_s=0.05"


async def test_without_a_replica_a_video_is_refused_at_once(start_process: StartProcess) -> None:
    """WEIR-154: 1013, to be tried again; speech is no part of it."""
    edge = await launch_edge(start_process, NOWHERE, EDGE_VIDEO_TARGETS=NOWHERE)
    async with watching(edge.address) as client:
        await client.send("session.start", prompt="A street.")
        assert (await client.error("backend_unavailable"))["retry_after_ms"] > 0
        assert (await client.closed())[0] == 1013
    assert (await http_get(edge.address, "/readyz")).status == 503
    assert (await http_get(edge.address, "/v1/capabilities")).status == 503


async def test_the_edge_is_ready_with_either_service(
    start_process: StartProcess, edge: str
) -> None:
    """WEIR-172: one that is not deployed, or away, does not take the other one down."""
    speech = await start_edge(
        start_process, await start_tts(start_process), EDGE_VIDEO_TARGETS=NOWHERE
    )
    document = (await http_get(speech.address, "/v1/capabilities")).json
    assert set(document) == {"speech"}
    assert (await http_get(edge, "/readyz")).status == 200
    document = (await http_get(edge, "/v1/capabilities")).json
    assert set(document) == {"video"}
    assert document["video"]["model"] == "pattern"
    assert document["video"]["limits"]["chunks_ahead"] == 2


async def test_a_full_replica_is_passed_over(start_process: StartProcess) -> None:
    """WEIR-134: two replicas with a place each serve two; a third client is told when to return."""
    replicas = [await start_video(start_process, SLOW, VIDEO_MAX_SESSIONS="1") for _ in range(2)]
    edge = await start_video_edge(start_process, *replicas, EDGE_VIDEO_ACCEPT_DEADLINE_S="0.5")
    async with watching(edge.address) as one, watching(edge.address) as two:
        await one.start(endless=True)
        await two.start(endless=True)
        async with watching(edge.address) as three:
            await three.send("session.start", prompt="A street.")
            assert (await three.error("overloaded"))["retry_after_ms"] > 0
            assert (await three.closed())[0] == 1013
        for client in (one, two):
            await client.chunk()
            await client.send("session.stop")
            assert (await client.finish())[1] == 1000
        async with watching(edge.address) as three:
            await three.start(num_frames=9)
            assert (await three.finish())[0].frames == 9


async def test_a_replica_killed_in_mid_chunk_ends_its_videos_only(
    start_process: StartProcess,
) -> None:
    """WEIR-179, WEIR-167: an error with what became of the interactions; the next one is served."""
    first = await start_video(start_process, SLOW)
    edge = await start_video_edge(start_process, first)
    async with watching(edge.address) as client:
        await client.start(endless=True)
        await client.interact("a", transition_chunks=1000)
        while not client.seen.queued:
            await client.next()
        await client.chunk()
        first.kill()
        seen, code = await client.finish()
    assert code == 1011
    assert seen.terminal is not None
    assert seen.terminal["type"] == "error"
    assert seen.terminal["code"] == "backend_unavailable"
    assert seen.terminal["unfinished_event_ids"] == ["a"]


async def test_after_a_replica_is_killed_the_other_one_serves(start_process: StartProcess) -> None:
    """WEIR-132: the next session, at once, although both were known."""
    replicas = [await start_video(start_process, SLOW) for _ in range(2)]
    edge = await start_video_edge(start_process, *replicas)
    for victim in replicas[:1]:
        victim.kill()
        await victim.exited()
    for _ in range(2):
        async with watching(edge.address) as client:
            await client.start(num_frames=9)
            seen, code = await client.finish()
        assert (seen.frames, code) == (9, 1000)


async def test_a_fault_of_the_model_ends_the_video_with_an_error(
    start_process: StartProcess,
) -> None:
    """WEIR-179: the outcome is the verdict; no trailer, no session.done, nothing of its text."""
    replica = await start_video(start_process, "fail_chunk=2")
    edge = await start_video_edge(start_process, replica)
    async with watching(edge.address) as client:
        await client.start(endless=True)
        seen, code = await client.finish()
    assert code == 1011
    assert len(seen.media) == 2
    assert seen.chunks[-1]["kind"] == "media"
    assert seen.terminal is not None
    assert seen.terminal["code"] == "internal"
    assert "pattern" not in seen.terminal["message"]


async def test_a_client_that_vanishes_frees_its_slot(edge: str, replica: ServiceProcess) -> None:
    """WEIR-163: within one step of the model."""
    async with watching(edge) as client:
        await client.start(endless=True)
        await client.chunk()
        client.socket.transport.abort()
    await until_idle(replica, 2.0)


async def test_a_client_that_closes_frees_its_slot(edge: str, replica: ServiceProcess) -> None:
    """WEIR-163: without a stop."""
    async with watching(edge) as client:
        await client.start(endless=True)
        await client.chunk()
        await client.socket.close()
    await until_idle(replica, 2.0)
