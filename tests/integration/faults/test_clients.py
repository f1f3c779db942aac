"""Clients that vanish in the middle of an utterance."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.edge.client import STREAMED, connected
from tests.integration.edge.suite import metric, start_edge, start_tts, until_metric
from tests.integration.faults.raw_peer import raw_peer
from tests.processes import ServiceProcess, StartProcess

STEP_S = 0.06
SLOW = f"step_ms={1000 * STEP_S:g},step_time_s=0.05"
LONG = "A text that nobody will ever hear to its end. " * 20


async def only_slot(start: StartProcess) -> tuple[ServiceProcess, ServiceProcess]:
    """Start an edge and a replica with one slot and no queue."""
    tts = await start_tts(start, SLOW, TTS_SLOTS="1", TTS_QUEUE_REQUESTS="0")
    return await start_edge(start, tts), tts


async def test_a_killed_client_frees_its_slot_within_a_second(start_process: StartProcess) -> None:
    """WEIR-163: the adapter stops within a step, and the only slot speaks for somebody else."""
    edge, tts = await only_slot(start_process)
    module = "tests.integration.faults.vanishing_client"
    client = await start_process(module, edge.address, LONG, ready_timeout_s=None)
    await client.event("hearing")
    assert await metric(tts, "weir_tts_busy_slots") == 1
    client.kill()
    await until_metric(tts, "weir_tts_busy_slots", 0, 1.0)
    assert await metric(tts, "weir_tts_cancellations_total") == 1
    assert await metric(tts, "weir_tts_wasted_audio_seconds_total") <= STEP_S + 1e-6
    await until_metric(edge, "weir_edge_speech_sessions", 0, 1.0)
    async with connected(edge.address, STREAMED) as other:
        assert (await other.say("Hi.")).texts == ["Hi."]
    assert not [line for line in edge.logs() + tts.logs() if line["level"] == "error"]


@pytest.mark.parametrize("way", ["reset", "half close"])
async def test_a_connection_that_breaks_frees_its_slot(
    start_process: StartProcess, way: str
) -> None:
    """WEIR-163: without a closing handshake, whichever way the network says so."""
    edge, tts = await only_slot(start_process)
    async with raw_peer(edge.address, **STREAMED) as peer:
        await peer.say("input.text", text=LONG)
        await peer.say("input.done")
        await peer.read_until(b'"audio.start"')
        await until_metric(tts, "weir_tts_busy_slots", 1)
        peer.break_off(reset=way == "reset")
        await until_metric(tts, "weir_tts_busy_slots", 0, 1.0)
        await until_metric(edge, "weir_edge_speech_sessions", 0, 6.0)
    assert await metric(edge, "weir_edge_speech_segments_total", outcome="cancelled") == 1
    assert not [line for line in edge.logs() + tts.logs() if line["level"] == "error"]


async def test_a_segment_that_was_refused_waits_and_keeps_its_place(
    start_process: StartProcess,
) -> None:
    """WEIR-134: while the only slot speaks for another, refusals are retried, not told."""
    edge, tts = await only_slot(start_process)
    config = {**STREAMED, "split_granularity": "sentence"}
    async with connected(edge.address, STREAMED) as first, connected(edge.address, config) as other:
        await first.text("A sentence of about two seconds length.")
        await first.send("input.done")
        await first.message("audio.start")
        heard = await other.say("One. Two. Three.")
        assert heard.texts == ["One.", " Two.", " Three."]
        assert not heard.errors
        assert [s.error for s in heard.segments] == [None] * 3
        rest: list[Any] = await first.until("session.done")
        assert not [f for f in rest if isinstance(f, dict) and f["type"] == "error"]
    assert await metric(tts, "weir_tts_refusals_total", reason="OVERLOADED") > 0


async def test_a_segment_that_is_refused_for_too_long_fails_its_utterance(
    start_process: StartProcess,
) -> None:
    """WEIR-134: at the deadline, with what the backend said; before anything was started."""
    tts = await start_tts(start_process, SLOW, TTS_SLOTS="1", TTS_QUEUE_REQUESTS="0")
    edge = await start_edge(start_process, tts, EDGE_SPEECH_RETRY_DEADLINE_S="0.3")
    async with (
        connected(edge.address, STREAMED) as first,
        connected(edge.address, STREAMED) as other,
    ):
        await first.text(LONG)
        await first.send("input.done")
        await first.message("audio.start")
        heard = await other.say("One.")
        (error,) = heard.errors
        assert (error["code"], error["cause"]) == ("segment_failed", "overloaded")
        assert "partial_audio" not in error
        assert heard.texts == []
        await first.send("session.close")
        await first.closed()
        await until_metric(tts, "weir_tts_busy_slots", 0, 1.0)
        assert (await other.say("Two.")).texts == ["Two."]
