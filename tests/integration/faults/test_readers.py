"""Peers that stop reading, read slowly, or ask without reading: memory and patience are bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.integration.edge.client import COMMITTED, STREAMED, connected
from tests.integration.edge.suite import metric, start_edge, start_tts, until_metric
from tests.integration.faults.memory import Growth
from tests.integration.faults.raw_peer import ping_frame, raw_peer, text_frame
from tests.processes import ServiceProcess, StartProcess

MIB = 1024 * 1024
GROWTH_BYTES = 4 * MIB
LONG = "x" * 20_000
"""57 MB of audio, which the tone adapter makes as fast as anybody takes it."""


async def warm(edge: ServiceProcess) -> None:
    """Have everything loaded and every pool of memory filled that ordinary speech needs."""
    async with connected(edge.address, STREAMED) as client:
        for _ in range(3):
            await client.say("x" * 500)


async def test_a_reader_that_stops_costs_little_and_is_removed(start_process: StartProcess) -> None:
    """WEIR-161, WEIR-160: neither process grows with what nobody reads; the slot is free again."""
    tts = await start_tts(start_process, TTS_SLOTS="1", TTS_QUEUE_REQUESTS="0")
    edge = await start_edge(start_process, tts, EDGE_SEND_DEADLINE_S="1.5")
    await warm(edge)
    growth = Growth([edge, tts])
    async with raw_peer(edge.address, **STREAMED) as peer:
        began = time.monotonic()
        await peer.say("input.text", text=LONG)
        await peer.say("input.done")
        await until_metric(tts, "weir_tts_busy_slots", 1)
        await growth.until(edge, "peer_stalled")
        assert time.monotonic() - began >= 1.5
        await until_metric(tts, "weir_tts_busy_slots", 0, 1.0)
        await until_metric(edge, "weir_edge_speech_sessions", 0)
        assert await metric(edge, "weir_edge_speech_peers_stalled_total") == 1
    assert all(grown < GROWTH_BYTES for grown in growth.most), growth.most
    async with connected(edge.address, STREAMED) as client:
        assert (await client.say("Hi.")).audio


async def test_synthesis_runs_hardly_ahead_of_a_reader_that_stops(
    start_process: StartProcess,
) -> None:
    """WEIR-160: what is spoken for nobody is bounded by seconds, not by the socket's buffers."""
    tts = await start_tts(start_process)
    edge = await start_edge(start_process, tts, EDGE_SEND_DEADLINE_S="1")
    async with raw_peer(edge.address, **STREAMED) as peer:
        await peer.say("input.text", text=LONG)
        await peer.say("input.done")
        await edge.event("peer_stalled")
        pushed = 0
        with suppress(ConnectionError):
            while data := await peer.read():
                pushed += len(data)
    assert 0 < pushed < MIB // 2


async def test_a_slow_reader_that_moves_is_left_alone(start_process: StartProcess) -> None:
    """WEIR-161: for several times the deadline, and it gets every byte."""
    tts = await start_tts(start_process)
    edge = await start_edge(start_process, tts, EDGE_SEND_DEADLINE_S="1.2")
    text = "x" * 300
    async with raw_peer(edge.address, **STREAMED) as peer:
        await peer.say("input.text", text=text)
        await peer.say("input.done")
        began, heard = time.monotonic(), 0
        while time.monotonic() - began < 4.0:
            heard += len(await peer.read(2000))
            await asyncio.sleep(0.05)  # the pace of this reader is what is tested
        slow = heard
        heard += await peer.read_until(b'"session.done"')
    audio = len(text) * 60 * 24 * 2
    assert slow < audio / 2, "it was not slow"
    assert audio < heard < audio * 1.05
    assert "peer_stalled" not in [line["event"] for line in edge.logs()]


async def test_a_peer_that_pings_and_never_reads_is_bounded(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-160: it is read no further, then removed, and its session really ends."""
    edge = await start_edge(start_process, tone_process, EDGE_SEND_DEADLINE_S="1.5")
    await warm(edge)
    growth = Growth([edge])
    async with raw_peer(edge.address, **STREAMED) as peer:
        flood = text_frame("session.ping") * (32 * MIB // len(text_frame("session.ping")))
        with pytest.raises((TimeoutError, ConnectionError)):
            await peer.send(flood, timeout_s=1.5)
        await growth.until(edge, "peer_stalled")
        await until_metric(edge, "weir_edge_speech_sessions", 0, 5.0)
    assert growth.most[0] < GROWTH_BYTES, growth.most


async def test_pongs_of_the_protocol_itself_do_not_pile_up(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-160: the library answers such pings unasked; a peer that reads no answer is dropped."""
    edge = await start_edge(start_process, tone_process)
    await warm(edge)
    growth = Growth([edge])
    async with raw_peer(edge.address, **STREAMED) as peer:
        flood = ping_frame(b"x" * 125) * (32 * MIB // 131)
        with pytest.raises(ConnectionError):
            await peer.send(flood, timeout_s=20)
        await growth.until(edge, "peer_floods")
        await until_metric(edge, "weir_edge_speech_sessions", 0, 5.0)
    assert growth.most[0] < GROWTH_BYTES, growth.most


async def test_a_peer_that_reads_its_pongs_may_ping_as_it_likes(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-160: the bound is on what waits, not on what was ever asked."""
    edge = await start_edge(start_process, tone_process)
    async with connected(edge.address, STREAMED) as client:
        for _ in range(40):
            waiters = [await client.socket.ping(b"%d" % i + b"x" * 120) for i in range(50)]
            async with asyncio.timeout(10):
                await asyncio.gather(*waiters)
        assert (await client.say("Hi.")).audio


@pytest.mark.parametrize(
    "config",
    [COMMITTED, {**STREAMED, "split_granularity": "sentence"}],
    ids=["commitment", "sentences"],
)
async def test_a_text_as_long_as_a_message_may_be_holds_others_up_for_a_bounded_time(
    start_process: StartProcess,
    tone_process: ServiceProcess,
    config: dict[str, object],
    record_property: Callable[[str, object], None],
) -> None:
    """WEIR-162: its cost grows with its length and no faster."""
    edge = await start_edge(start_process, tone_process)
    text = "Hello there, one two. " * 5900
    async with connected(edge.address, config) as big, connected(edge.address, STREAMED) as other:
        await other.pong()
        await big.text(text)
        began = time.monotonic()
        await other.pong()
        late_s = time.monotonic() - began
        await big.send("input.cancel")
        answer = (await big.until("input.cancelled"))[-1]
        assert isinstance(answer, dict)
        assert answer["utterance_index"] == 0
    record_property("pong_late_ms", round(1000 * late_s))
    # An order of magnitude above what was measured; a cost that is not linear is far beyond it.
    assert late_s < 5
