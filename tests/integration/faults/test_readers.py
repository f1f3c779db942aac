"""Peers that stop reading, read slowly, or ask without reading: memory and patience are bounded."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

from tests.integration.edge.client import STREAMED, connected
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


async def test_a_peer_that_reads_late_but_reads_may_ping_on(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-160: the bound is on the pongs that wait, not on those of a whole connection."""
    edge = await start_edge(start_process, tone_process)
    burst, size = 500, len(ping_frame(b"x" * 125))
    async with raw_peer(edge.address, **STREAMED) as peer:
        for _ in range(8):
            await peer.send(ping_frame(b"x" * 125) * burst)
            left = burst * (size - 4)  # a server's frames carry no mask
            while left:
                data = await peer.read(left)
                assert data, "the connection ended"
                left -= len(data)
    assert "peer_floods" not in [line["event"] for line in edge.logs()]


async def test_a_stalled_reader_does_not_hold_up_the_end_of_the_process(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-065: it can be told nothing, so it is dropped; the end is orderly all the same."""
    edge = await start_edge(
        start_process, tone_process, EDGE_DRAIN_DEADLINE_S="0.2", EDGE_CLOSE_TIMEOUT_S="4"
    )
    async with raw_peer(edge.address, **STREAMED) as peer:
        await peer.say("input.text", text=LONG)
        await peer.say("input.done")
        await until_metric(tone_process, "weir_tts_busy_slots", 1)
        began = time.monotonic()
        edge.terminate()
        assert await edge.exited() == 0
        assert time.monotonic() - began < 0.2 + 4
    told = [line["event"] for line in edge.logs() if line["level"] != "info"]
    assert told == ["drain_cut_short"]
    await until_metric(tone_process, "weir_tts_busy_slots", 0, 1.0)
