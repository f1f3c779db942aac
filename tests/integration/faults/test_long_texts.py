"""Texts as long as a message may be, which take much longer to cut than to send."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.edge.client import COMMITTED, STREAMED, SpeechClient, connected
from tests.integration.edge.suite import start_edge
from tests.processes import ServiceProcess, StartProcess

LONGEST = "1 " * 64_900
"""Nearly 128 Ki characters, of the kind that costs the rules the most: a third of a second."""


async def digested(client: SpeechClient) -> None:
    """Wait until everything sent so far has been taken in."""
    await client.send("session.ping")
    await client.until("session.pong")


async def test_a_long_text_does_not_hold_up_other_sessions(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-162: others are served many times while it is still being cut."""
    edge = await start_edge(start_process, tone_process)
    async with (
        connected(edge.address, COMMITTED) as big,
        connected(edge.address, STREAMED) as other,
    ):
        await other.pong()
        await big.text(LONGEST)
        digesting = asyncio.create_task(digested(big))
        for _ in range(4):
            await other.pong()
        assert not digesting.done(), "the long text was cut before anybody else was served"
        await digesting
        await big.send("input.cancel")
        await big.until("input.cancelled")


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_long_text_is_cut_like_a_short_one(
    start_process: StartProcess, tone_process: ServiceProcess, at_once: bool
) -> None:
    """IO-INV-102: also while an earlier segment of the same utterance is being spoken."""
    edge = await start_edge(start_process, tone_process)
    sentence = " And one more of them."
    text = sentence * 150
    config = {**COMMITTED, "response_format": "mulaw"}
    async with connected(edge.address, config) as client:
        heard = await client.say("The first. ", *([text] if at_once else [sentence] * 150))
    assert not heard.errors
    assert heard.texts[0] == "The first."
    assert heard.texts[1:] == [" " + sentence, *[sentence] * 149]


async def test_a_drain_waits_for_a_long_text_that_is_being_cut(
    start_process: StartProcess, tone_process: ServiceProcess
) -> None:
    """WEIR-181: what happens meanwhile comes after it, in order."""
    edge = await start_edge(start_process, tone_process)
    async with connected(edge.address, {**STREAMED, "split_granularity": "clause"}) as client:
        await client.pong()
        await client.text("a, b. " * 20_000)
        edge.terminate()
        await edge.event("draining")
        await client.send("input.cancel")
        frames = await client.until("error")
        cancelled, error = (f for f in frames if isinstance(f, dict) and f["type"] in WANTED)
        assert cancelled["utterance_index"] == 0
        assert error["code"] == "shutting_down"
        assert (await client.closed())[0] == 1012
    assert await edge.exited() == 0


WANTED = ("input.cancelled", "error")
