"""Limits of a session and of the process."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import pytest

from tests.integration.edge.client import COMMITTED, STREAMED, connected
from tests.integration.edge.suite import (
    http_get,
    metric,
    run_once,
    start_edge,
    until_metric,
)
from tests.processes import ServiceProcess, StartProcess

NARROW = {
    "EDGE_SPEECH_UTTERANCE_CHARACTERS": "100",
    "EDGE_SPEECH_PENDING_CHARACTERS": "20",
    "EDGE_SPEECH_MESSAGE_CHARACTERS": "256",
    "EDGE_SPEECH_SEGMENT_FILE_BYTES": "100000",
}


@pytest.fixture(scope="module")
def narrow(start_shared: StartProcess, tone: ServiceProcess) -> str:
    """The address of an edge with small limits."""
    return run_once(start_edge(start_shared, tone, **NARROW)).address


async def test_one_connection_too_many_is_refused_and_told_when_to_come_back(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """WEIR-160: overloaded, close 1013; a place that is given up is free again."""
    edge = await start_edge(start_process, tone, EDGE_MAX_SESSIONS="2")
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(connected(edge.address, STREAMED))
        second = await stack.enter_async_context(connected(edge.address, STREAMED))
        assert (await first.say("Hi.")).audio
        assert (await second.say("Hi.")).audio
        async with connected(edge.address) as third:
            assert (await third.error("overloaded"))["retry_after_ms"] > 0
            assert await third.closed() == (1013, "overloaded", [])
        assert await metric(edge, "weir_edge_speech_sessions_refused_total") == 1
        assert (await http_get(edge.address, "/readyz")).status == 200
        await first.send("session.close")
        await first.closed()
        await until_metric(edge, "weir_edge_speech_sessions", 1)
        async with connected(edge.address, STREAMED) as fourth:
            assert (await fourth.say("Hi.")).audio


@pytest.mark.parametrize("over", [0, 1])
async def test_an_utterance_may_be_as_long_as_its_limit(narrow: str, over: int) -> None:
    """IO-INV-103: one character more fails it, and nothing of it is submitted."""
    async with connected(narrow, STREAMED) as client:
        heard = await client.say("x" * 60, "x" * (40 + over))
        if not over:
            assert heard.texts == ["x" * 100]
            return
        assert heard.texts == []
        assert [error["code"] for error in heard.errors] == ["utterance_too_long"]
        assert (await client.say("Fine.")).texts == ["Fine."]


async def test_text_behind_an_utterance_that_grew_too_long_is_refused(narrow: str) -> None:
    """IO-INV-103: until its end; the segment that was in flight is delivered."""
    async with connected(narrow, {**COMMITTED, "language": "en"}) as client:
        heard = await client.say("Short one. ", "x" * 100, "y")
    assert heard.texts == ["Short one."]
    assert [error["code"] for error in heard.errors] == ["utterance_too_long", "utterance_failed"]


@pytest.mark.parametrize("over", [0, 1])
async def test_a_pending_suffix_may_be_as_long_as_its_limit(narrow: str, over: int) -> None:
    """IO-INV-103: the limit itself is allowed; one code point more fails the utterance."""
    digits = "1" * (20 + over)  # a number may go on, so all of it is pending
    async with connected(narrow, COMMITTED) as client:
        await client.text(digits)
        if over:
            await client.error("pending_text_limit")
        await client.send("input.done")
        heard = await client.hear()
        assert heard.texts == ([] if over else [digits])
        assert (await client.say("Fine.")).texts == ["Fine."]


@pytest.mark.parametrize("over", [0, 1])
async def test_a_message_may_be_as_long_as_its_limit(narrow: str, over: int) -> None:
    """WEIR-210: counted in characters of the frame; a configuration may be longer."""
    frame = json.dumps({"type": "input.text", "text": ""})
    frame = frame.replace('""', '"Hi."') + " " * (256 - len(frame) - 3 + over)
    async with connected(narrow, {**STREAMED, "ref_text": "", "unknown": "x" * 1000}) as client:
        await client.socket.send(frame)
        if over:
            assert "256" in (await client.error("message_too_large"))["message"]
        await client.send("input.done")
        assert (await client.hear()).texts == ([] if over else ["Hi."])


async def test_a_file_that_outgrows_its_limit_fails_its_segment(narrow: str) -> None:
    """WEIR-160: nothing is collected without bound; streamed audio has no such limit."""
    text = "x" * 60  # 3.6 s: 172,800 bytes
    async with connected(narrow, {"response_format": "wav"}) as client:
        (segment,) = (await client.say(text)).segments
        assert segment.error is not None
        assert "100000" in segment.error["message"]
        assert not segment.audio
        await client.configure(**STREAMED)
        assert len((await client.say(text)).audio) == 172_800


async def test_the_limits_in_force_are_published(narrow: str) -> None:
    """WEIR-174: those of this process, not the defaults."""
    limits = (await http_get(narrow, "/v1/capabilities")).json["speech"]["limits"]
    assert limits["utterance_characters"] == 100
    assert limits["pending_characters"] == 20
    assert limits["message_characters"] == 256
