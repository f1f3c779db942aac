"""The speech vectors, played to a running edge over a real socket."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.contracts.speech_vectors import INDEPENDENT, vectors
from tests.integration.edge.client import Message, SpeechClient, connected
from tests.integration.edge.suite import start_edge
from tests.processes import ServiceProcess, StartProcess

VECTORS = [pytest.param(v, id=v["name"]) for v in vectors() if v["over_sockets"]]


def test_there_are_vectors_to_play() -> None:
    """WEIR-155: an empty folder would prove nothing."""
    assert len(VECTORS) >= 10


@pytest.mark.parametrize("vector", VECTORS)
async def test_a_client_sees_the_conversation_of_the_vector(
    vector: dict[str, Any], edge: str, tone: ServiceProcess, start_process: StartProcess
) -> None:
    """WEIR-155: the running server says what the pure session says, message for message."""
    address = edge
    if vector.get("limits"):
        limits = {f"EDGE_SPEECH_{name.upper()}": str(v) for name, v in vector["limits"].items()}
        address = (await start_edge(start_process, tone, **limits)).address
    async with connected(address) as client:
        seen = await _play(client, vector["steps"])
    told = [{key: message[key] for key in INDEPENDENT if key in message} for message in seen]
    closes = [message if "close" in message else None for message in seen]
    assert [close or rest for close, rest in zip(closes, told, strict=True)] == (
        vector["conversation"]
    )


async def _play(client: SpeechClient, steps: list[Message]) -> list[Message]:
    """Send the client's frames, each when everything before it has been answered."""
    seen: list[Message] = []
    due = 0
    for step in steps:
        frame = step.get("client_frame") or (json.dumps(step["client"]) if "client" in step else "")
        if frame:
            await _wait(client, seen, due)
            with contextlib.suppress(ConnectionClosed):  # what comes too late is not even sent
                await client.socket.send(frame)
        due += sum("type" in m and m["type"] != "audio.chunk" for m in step.get("server", ()))
        due += "close" in step
        if step.get("disconnect"):
            break
    await _wait(client, seen, due)
    return seen


async def _wait(client: SpeechClient, seen: list[Message], due: int) -> None:
    """Take frames until `due` JSON messages, the close among them, have come."""
    while len(seen) < due:
        try:
            frame = await client.next()
        except ConnectionClosed:
            seen.append({"close": client.socket.close_code})
            continue
        if isinstance(frame, dict) and frame["type"] != "audio.chunk":
            seen.append(frame)
