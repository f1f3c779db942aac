"""Replicas that are killed, go away, come back and drain while sessions speak."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.integration.edge.client import COMMITTED, STREAMED, Heard, connected
from tests.integration.edge.suite import (
    eventually,
    http_get,
    metric,
    start_edge,
    start_tts,
    until_metric,
    until_ready,
)
from tests.processes import ServiceProcess, StartProcess

SLOW = "step_ms=60,step_time_s=0.05"
STUCK = "step_time_s=600"
LONG = "A text that takes several seconds to speak, so that there is a middle of it."


@pytest.fixture
def reserved_port() -> Iterator[str]:
    """A port that replicas of this test may have one after the other, and nobody else meanwhile."""
    with socket.socket() as holder:
        # Bound and not listening: others that reuse addresses may listen, none is given this port.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield str(holder.getsockname()[1])


async def busy(*replicas: ServiceProcess) -> ServiceProcess:
    """Return the one replica that speaks."""

    async def speaking() -> list[ServiceProcess]:
        return [r for r in replicas if await metric(r, "weir_tts_busy_slots") > 0]

    (found,) = await eventually(speaking, "a replica speaks")
    return found


async def test_a_replica_killed_in_mid_segment_fails_the_utterance_and_no_more(
    start_process: StartProcess,
) -> None:
    """IO-INV-103: bytes that went out are to be discarded; another replica speaks next."""
    replicas = [await start_tts(start_process, SLOW) for _ in range(2)]
    edge = await start_edge(start_process, *replicas)
    addresses = [replica.address for replica in replicas]
    await eventually(lambda: knows(edge, *addresses), "both replicas are known")
    config = {**COMMITTED, "word_timestamps": False}
    async with connected(edge.address, config) as client:
        await client.text(f"{LONG} And then another sentence. ")
        start = await client.message("audio.start")
        assert isinstance(await client.next(), bytes)
        (await busy(*replicas)).kill()
        frames = await client.until("error")
        error = frames[-1]
        assert isinstance(error, dict)
        assert all(isinstance(frame, bytes) for frame in frames[:-1])
        assert error["code"] == "segment_failed"
        assert error["request_id"] == start["request_id"]
        assert (error["partial_audio"], error["action"]) == (True, "discard")
        done = await client.message("audio.done")
        assert done["error"] is True
        await client.text("More. ")
        await client.error("utterance_failed")
        await client.send("input.done")
        assert (await client.message("session.done"))["total_sentences"] == 1
        heard = await client.say("The other one speaks.")
        assert heard.texts == ["The other one speaks."]
        assert heard.done["utterance_index"] == 1


async def test_a_segment_that_gave_nothing_is_spoken_by_another_replica(
    start_process: StartProcess, reserved_port: str
) -> None:
    """WEIR-134: where the adapter allows it; the client learns nothing of it."""
    stuck = await start_tts(start_process, STUCK)
    edge = await start_edge(start_process, stuck, f"127.0.0.1:{reserved_port}")
    async with connected(edge.address, COMMITTED) as client:
        await client.text("Hello there. ")
        await client.message("audio.start")
        await start_tts(start_process, TTS_PORT=reserved_port)
        await eventually(
            lambda: knows(edge, f"127.0.0.1:{reserved_port}"), "the other replica is known"
        )
        stuck.kill()
        await client.send("input.done")
        frames = await client.until("session.done")
    kinds = ["audio" if isinstance(f, bytes) else f["type"] for f in frames]
    assert kinds[-2:] == ["audio.done", "session.done"]
    assert set(kinds[:-2]) == {"audio"}
    assert sum(len(f) for f in frames if isinstance(f, bytes)) == 12 * 60 * 24 * 2


async def test_sessions_outlive_the_loss_of_all_replicas(
    start_process: StartProcess, reserved_port: str
) -> None:
    """WEIR-131, WEIR-122: without a replica it is told and the connection stays; back, it works."""
    tts = await start_tts(start_process, TTS_PORT=reserved_port)
    edge = await start_edge(start_process, tts, EDGE_SPEECH_RETRY_DEADLINE_S="0.3")
    async with connected(edge.address, STREAMED) as client:
        assert (await client.say("Before.")).texts == ["Before."]
        tts.kill()
        await tts.exited()
        await eventually(lambda: unready(edge), "the loss is noticed")
        heard = await client.say("Meanwhile.")
        (error,) = heard.errors
        assert (error["code"], error["cause"]) == ("segment_failed", "backend_unavailable")
        await client.configure(**STREAMED)
        await client.error("backend_unavailable")
        await start_tts(start_process, TTS_PORT=reserved_port)
        await until_ready(edge.address)
        await client.configure(**STREAMED)
        assert (await client.say("Afterwards.")).texts == ["Afterwards."]


async def unready(edge: ServiceProcess) -> bool:
    """Whether the edge says that it has no replica."""
    return (await http_get(edge.address, "/readyz")).status == 503


async def test_a_segment_waits_for_a_replica_to_come_back(
    start_process: StartProcess, reserved_port: str
) -> None:
    """WEIR-134: within the deadline nothing is lost and nothing is told."""
    tts = await start_tts(start_process, TTS_PORT=reserved_port)
    edge = await start_edge(start_process, tts)
    async with connected(edge.address, STREAMED) as client:
        tts.kill()
        await tts.exited()
        await client.text("Hello there.")
        await client.send("input.done")
        await client.pong()
        await start_tts(start_process, TTS_PORT=reserved_port)
        heard = await client.hear()
    assert heard.texts == ["Hello there."]
    assert not heard.errors


async def test_a_replica_that_drains_under_load_loses_nothing(start_process: StartProcess) -> None:
    """WEIR-080: running segments end there, new ones go elsewhere; no client notices."""
    replicas = [await start_tts(start_process, SLOW, TTS_SLOTS="4") for _ in range(2)]
    # No look at the replicas comes in time: the edge learns of the drain where it meets it.
    edge = await start_edge(start_process, *replicas, EDGE_BACKEND_REFRESH_INTERVAL_S="3600")
    addresses = [replica.address for replica in replicas]
    await eventually(lambda: knows(edge, *addresses), "both replicas are known")
    config = {**STREAMED, "split_granularity": "sentence", "seed": 1}
    sentence = "Ten letters."

    async def speak() -> Heard:
        async with connected(edge.address, config) as client:
            return await client.say(f" {sentence}" * 4)

    speaking = [asyncio.create_task(speak()) for _ in range(6)]
    await until_metric(replicas[0], "weir_tts_busy_slots", 3)
    replicas[0].terminate()
    assert await replicas[0].exited() == 0
    for heard in await asyncio.gather(*speaking):
        assert not heard.errors
        assert len(heard.segments) == 4
        assert all(segment.error is None for segment in heard.segments)
        assert len(heard.audio) == 4 * 13 * 60 * 24 * 2
    for told in (edge.logs(), *(replica.logs() for replica in replicas)):
        assert not [line for line in told if line["level"] == "error"]


async def knows(edge: ServiceProcess, *addresses: str) -> bool:
    """Whether the edge has found every one of these replicas."""
    found = {line["replica"] for line in edge.logs() if line.get("event") == "replica_ready"}
    return found >= set(addresses)
