"""What users send stands in no log; what identifies a request stands in all of them."""

from __future__ import annotations

import json

from tests.integration.edge.client import COMMITTED, STREAMED, connected
from tests.integration.edge.conftest import FAULT
from tests.integration.edge.suite import http_get, start_edge, start_tts
from tests.processes import ServiceProcess, StartProcess

SECRET = "Xylophonquark"
"""Stands in everything this client sends."""


async def misbehave(address: str) -> str:
    """Send the secret in every way there is, good and bad; return a failed segment's request id."""
    async with connected(address, {**STREAMED, "voice": SECRET, SECRET: SECRET}) as client:
        assert (await client.say(f"{SECRET}. ")).audio
        heard = await client.say(f"{SECRET} is {FAULT}. ")
        error = heard.segments[0].error
        assert error is not None
        for frame in (
            SECRET,
            json.dumps({"type": SECRET}),
            json.dumps({"type": "input.text", "text": [SECRET]}),
            json.dumps({"type": "session.config", "response_format": SECRET}),
            json.dumps({"type": "session.config", "language": SECRET}),
            json.dumps({"type": "session.config", "ref_audio": f"http://{SECRET}/"}),
            json.dumps({"type": "input.text", "text": SECRET * 20_000}),
        ):
            await client.socket.send(frame)
            assert SECRET not in (await client.message("error"))["message"]
        await client.text(SECRET)
        await client.send("input.cancel")
        await client.message("input.cancelled")
    async with connected(address, COMMITTED) as client:
        heard = await client.say(f"{SECRET} " + "1" * 5000)
        assert "pending_text_limit" in [error["code"] for error in heard.errors]
    async with connected(address) as client:
        await client.text(SECRET)
        await client.error("invalid_message")
    await http_get(address, f"/{SECRET}", host=SECRET)
    await http_get(address, f"/v1/capabilities?{SECRET}", authorization=f"Bearer {SECRET}")
    return str(error["request_id"])


async def test_no_log_of_any_process_holds_what_a_user_sent(start_process: StartProcess) -> None:
    """WEIR-070: not in failures either, nor the keys and voices a client makes up."""
    options = f"fail_marker={FAULT},fail_after_steps=2"
    tts = await start_tts(start_process, options, TTS_LOG_LEVEL="info")
    edge = await start_edge(start_process, tts, EDGE_LOG_LEVEL="info")
    request_id = await misbehave(edge.address)
    processes: tuple[ServiceProcess, ...] = (edge, tts)
    for process in processes:
        process.terminate()
        assert await process.exited() == 0
        assert SECRET.lower() not in process.text().lower()
        # The failure of the one segment is told in both logs under the id the client was given.
        told = [line for line in process.logs() if line.get("request_id") == request_id]
        assert told, f"{process.module} tells nothing of {request_id}"
        for line in process.logs():
            if line["level"] in ("warning", "error"):
                assert line["request_id"] == request_id, line["event"]
        assert all(line["session_id"] == request_id.split(".")[0] for line in told)
