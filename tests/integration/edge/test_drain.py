"""SIGTERM at the edge: what is spoken ends, what is open is told, nothing new comes in."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.integration.edge.client import STREAMED, connected
from tests.integration.edge.suite import eventually, http_get, start_edge
from tests.processes import ServiceProcess, StartProcess

TEXT = "Twenty characters..."


async def test_a_drain_lets_what_is_being_spoken_end(
    start_process: StartProcess, slow_tone: ServiceProcess
) -> None:
    """WEIR-181: nothing of the utterance is lost; then error shutting_down and close 1012."""
    edge = await start_edge(start_process, slow_tone)
    address = edge.address
    async with (
        connected(address, STREAMED) as speaking,
        connected(address, STREAMED) as idle,
        connected(address) as unconfigured,
    ):
        await speaking.text(TEXT)
        await speaking.send("input.done")
        await speaking.message("audio.start")
        edge.terminate()
        await edge.event("draining")
        for client in (idle, unconfigured):
            assert (await client.error("shutting_down"))["retry_after_ms"] > 0
            assert await client.closed() == (1012, "shutting_down", [])
        with pytest.raises(OSError, match="Connect"):
            async with connected(address):
                pass
        frames = await speaking.until("session.done")
        audio = b"".join(frame for frame in frames if isinstance(frame, bytes))
        assert len(audio) == len(TEXT) * 60 * 24 * 2
        await speaking.error("shutting_down")
        assert await speaking.closed() == (1012, "shutting_down", [])
    assert await edge.exited() == 0


async def test_an_utterance_that_is_still_being_typed_may_be_finished(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """WEIR-181: an open utterance counts as being spoken; the next one does not begin."""
    edge = await start_edge(start_process, tone)
    async with connected(edge.address, STREAMED) as client:
        await client.text("Half a ")
        await client.pong()
        edge.terminate()
        await edge.event("draining")
        heard = await client.say("sentence.")
        assert heard.texts == ["Half a sentence."]
        await client.error("shutting_down")
        assert (await client.closed())[0] == 1012
    assert await edge.exited() == 0


async def test_a_drain_ends_at_its_deadline(
    start_process: StartProcess, slow_tone: ServiceProcess
) -> None:
    """WEIR-080: whoever speaks on is told and closed; the process ends with success."""
    edge = await start_edge(start_process, slow_tone, EDGE_DRAIN_DEADLINE_S="0.2")
    async with connected(edge.address, STREAMED) as client:
        await client.text("A text that takes much longer than the drain may. " * 4)
        await client.send("input.done")
        await client.message("audio.start")
        edge.terminate()
        code, _, frames = await client.closed()
        assert code == 1012
        assert isinstance(frames[-1], dict)
        assert frames[-1]["code"] == "shutting_down"
    assert await edge.exited() == 0
    assert (await edge.event("drain_cut_short"))["forced"] is False


async def test_a_peer_that_reads_nothing_does_not_hold_up_the_end(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """WEIR-065: closing is time-boxed, and it is an orderly end all the same."""
    edge = await start_edge(
        start_process, tone, EDGE_DRAIN_DEADLINE_S="0.2", EDGE_CLOSE_TIMEOUT_S="2"
    )
    host, _, port = edge.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        # A handshake and then silence: this peer answers no close either.
        writer.write(
            b"GET /v1/audio/speech/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Sec-WebSocket-Version: 13\r\n\r\n"
        )
        await reader.readuntil(b"\r\n\r\n")
        began = time.monotonic()
        edge.terminate()
        assert await edge.exited(10) == 0
        assert time.monotonic() - began < 5
        events = [line["event"] for line in edge.logs()]
        assert "stopped" in events
        assert not [line for line in edge.logs() if line["level"] == "error"]
    finally:
        writer.close()


async def test_a_peer_that_never_asks_does_not_hold_up_the_end(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """WEIR-065: a connection whose handshake has not come is not waited for."""
    edge = await start_edge(start_process, tone, EDGE_CLOSE_TIMEOUT_S="2")
    host, _, port = edge.address.partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    try:
        async with connected(edge.address, STREAMED) as client:
            await client.pong()  # the other connection has been taken by now
            edge.terminate()
            assert (await client.closed())[0] == 1012
        assert await edge.exited(10) == 0
        assert not [line for line in edge.logs() if line["level"] in ("warning", "error")]
    finally:
        writer.close()


async def test_the_drain_is_told_by_readiness(
    start_process: StartProcess, slow_tone: ServiceProcess
) -> None:
    """WEIR-067: on the admin port, since the public one takes no connections any more."""
    edge = await start_edge(start_process, slow_tone)
    admin = (await edge.event("admin_listening"))["address"]
    assert (await http_get(admin, "/readyz", connection="close")).status == 200
    async with connected(edge.address, STREAMED) as client:
        await client.text(TEXT)
        await client.send("input.done")
        await client.message("audio.start")
        edge.terminate()
        await edge.event("draining")
        await eventually(lambda: unready(admin), "readiness tells of the drain", 1.0)
        assert (await http_get(admin, "/healthz", connection="close")).status == 200
        await client.until("session.done")
        assert (await client.closed())[0] == 1012


async def unready(admin: str) -> bool:
    """Whether the admin port says that no new sessions can be served."""
    return (await http_get(admin, "/readyz", connection="close")).status == 503
