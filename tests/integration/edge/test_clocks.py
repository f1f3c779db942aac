"""The two clocks of a session, for real, once each and with short limits."""

from __future__ import annotations

import time

from tests.integration.edge.client import COMMITTED, STREAMED, connected
from tests.integration.edge.suite import start_edge
from tests.processes import ServiceProcess, StartProcess

CONFIG_S = 0.4
IDLE_S = 0.6
IMPATIENT = {
    "EDGE_SPEECH_CONFIG_TIMEOUT_S": str(CONFIG_S),
    "EDGE_SPEECH_IDLE_TIMEOUT_S": str(IDLE_S),
}


async def test_a_session_without_configuration_ends(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """IO-INV-103, WEIR-152: error and close 1008 when the time for the first message is over."""
    edge = await start_edge(start_process, tone, **IMPATIENT)
    began = time.monotonic()
    async with connected(edge.address) as client:
        await client.error("idle_timeout")
        assert await client.closed() == (1008, "idle_timeout", [])
    assert time.monotonic() - began >= CONFIG_S


async def test_an_idle_session_ends_after_its_full_window(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """IO-INV-103, WEIR-152: a malformed frame does not hold it off, nor does pending text."""
    edge = await start_edge(start_process, tone, **IMPATIENT)
    async with connected(edge.address, COMMITTED) as client:
        await client.text("pending")
        began = time.monotonic()
        await client.socket.send("{")
        await client.error("invalid_message")
        error = await client.error("idle_timeout")
        assert error["utterance_index"] == 0
        assert time.monotonic() - began >= IDLE_S - 0.01
        assert await client.closed() == (1008, "idle_timeout", [])


async def test_the_idle_clock_stands_still_while_committed_text_is_spoken(
    start_process: StartProcess, slow_tone: ServiceProcess
) -> None:
    """IO-INV-103: far beyond the limit; a full window begins when all of it has settled."""
    edge = await start_edge(start_process, slow_tone, **IMPATIENT)
    text = "A sentence of thirty characters"
    async with connected(edge.address, STREAMED) as client:
        began = time.monotonic()
        heard = await client.say(text)
        settled = time.monotonic()
        assert settled - began > 2 * IDLE_S
        assert heard.texts == [text]
        await client.error("idle_timeout")
        assert time.monotonic() - settled >= IDLE_S - 0.05
        assert (await client.closed())[0] == 1008


async def test_pings_keep_a_session_that_has_nothing_to_say(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """IO-INV-103, WEIR-152: while no utterance is open, for any number of windows."""
    edge = await start_edge(start_process, tone, **IMPATIENT)
    async with connected(edge.address, STREAMED) as client:
        began = time.monotonic()
        while time.monotonic() - began < 2 * IDLE_S:
            await client.pong()
        assert (await client.say("Hi.")).audio
