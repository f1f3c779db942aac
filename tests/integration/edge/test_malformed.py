"""Frames that are not what they should be, before and after the first configuration."""

from __future__ import annotations

import json

import pytest

from tests.integration.edge.client import STREAMED, connected
from tests.integration.edge.suite import metric, start_edge
from tests.processes import ServiceProcess, StartProcess

MALFORMED: list[tuple[str | bytes, str]] = [
    ("", "invalid_message"),
    ("{", "invalid_message"),
    ("nothing of JSON", "invalid_message"),
    ("null", "invalid_message"),
    ("[]", "invalid_message"),
    ("{}", "invalid_message"),
    ('{"type": null}', "invalid_message"),
    ('{"type": "session.unknown"}', "invalid_message"),
    ('{"type": "audio.start"}', "invalid_message"),
    ('{"type": "input.text", "text": 5}', "invalid_message"),
    ('{"type": "input.text", "text": "\\ud800"}', "invalid_message"),
    ('{"type": "session.config", "speed": NaN}', "invalid_message"),
    ('{"type": "session.config", "speed": 100}', "invalid_message"),
    ('{"type": "session.config", "response_format": "aiff"}', "invalid_message"),
    ("[" * 100_000, "invalid_message"),
    (b"\x00\x01", "invalid_message"),
    (b'{"type": "session.ping"}', "invalid_message"),
    (json.dumps({"type": "input.text", "text": "x" * 131_072}), "message_too_large"),
    (json.dumps({"type": "session.config", "ref_text": "x" * 4_194_304}), "message_too_large"),
]


@pytest.mark.parametrize(("frame", "code"), MALFORMED, ids=lambda value: str(value)[:32])
async def test_before_the_first_configuration_a_fault_ends_the_session(
    edge: str, frame: str | bytes, code: str
) -> None:
    """WEIR-210: error, then close 1008."""
    async with connected(edge) as client:
        await client.socket.send(frame)
        await client.error(code)
        assert await client.closed() == (1008, code, [])


@pytest.mark.parametrize(("frame", "code"), MALFORMED, ids=lambda value: str(value)[:32])
async def test_afterwards_the_session_and_its_utterance_go_on(
    edge: str, frame: str | bytes, code: str
) -> None:
    """WEIR-210: a fault changes nothing but costs its error."""
    async with connected(edge, STREAMED) as client:
        await client.text("Hello ")
        await client.socket.send(frame)
        await client.error(code)
        heard = await client.say("there.")
    assert heard.texts == ["Hello there."]
    assert heard.segments[0].start["format"] == "pcm"


@pytest.mark.parametrize(
    "kind", ["input.text", "input.done", "input.cancel", "session.ping", "input.commit"]
)
async def test_the_first_message_is_a_configuration(edge: str, kind: str) -> None:
    """WEIR-210: any other valid message ends the session."""
    async with connected(edge) as client:
        await client.send(kind)
        await client.error("invalid_message")
        assert (await client.closed())[0] == 1008


@pytest.mark.parametrize(
    "config",
    [{"language": "Klingon"}, {"word_timestamps": True}, {"text_input_mode": "commitment"}],
)
async def test_a_first_configuration_that_cannot_hold_ends_the_session(
    edge: str, config: dict[str, object]
) -> None:
    """WEIR-140: nothing stands in for what was asked."""
    async with connected(edge, config) as client:
        await client.error("unsupported_option")
        assert (await client.closed())[0] == 1008


@pytest.mark.parametrize("configured", [False, True])
async def test_text_that_is_no_utf8_closes_with_1007(edge: str, configured: bool) -> None:
    """WEIR-211: faults of the WebSocket protocol end the connection at any time."""
    async with connected(edge, STREAMED if configured else None) as client:
        await client.socket.send(b"\xff\xfe", text=True)
        assert (await client.closed())[0] == 1007


async def test_a_frame_beyond_the_limit_closes_with_1009(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """WEIR-211: it is not even read; one at the limit is."""
    small = await start_edge(start_process, tone, EDGE_MAX_FRAME_BYTES="2048")
    async with connected(small.address, STREAMED) as client:
        text = "x" * (2048 - len('{"type": "input.text", "text": ""}'))
        await client.text(text)
        await client.pong()
        await client.text(text + "x")
        assert (await client.closed())[0] == 1009


async def test_a_frame_in_fragments_is_one_message(edge: str) -> None:
    """WEIR-211: however a client cuts it."""
    async with connected(edge, STREAMED) as client:
        message = '{"type":"input.text","text":"Hällo 汉 there."}'
        await client.socket.send(iter(message))
        await client.send("input.done")
        assert (await client.hear()).texts == ["Hällo 汉 there."]


async def test_faults_are_counted_by_their_reason(edge: str, edge_process: ServiceProcess) -> None:
    """WEIR-072: an operator sees how many frames were refused, and why."""
    name = "weir_edge_speech_frames_rejected_total"
    before = await metric(edge_process, name, reason="invalid_message")
    async with connected(edge, STREAMED) as client:
        await client.socket.send("{")
        await client.error("invalid_message")
        assert await metric(edge_process, name, reason="invalid_message") == before + 1
