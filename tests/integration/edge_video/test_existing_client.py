"""A client of the endpoint as they exist today runs against the edge unchanged.

The client here knows only what such clients know: it sends the fields they send, ignores what it
does not know, and fails where one of them would.
"""

from __future__ import annotations

import io
import json
from typing import Any

import av
import pytest
from websockets.asyncio.client import connect

from tests.integration.edge.suite import run_once
from tests.integration.edge_video.suite import existing_start, start_video, start_video_edge
from tests.processes import StartProcess

UPDATES = [(1, "Snow begins to fall", 2), (4, "Warm lanterns light up", 2)]
"""After so many chunks: the next prompt, and the chunks over which it comes."""


@pytest.fixture(scope="module")
def edge(start_shared: StartProcess) -> str:
    """An edge in front of a replica that takes its time, so that updates come while it works."""
    replica = run_once(start_video(start_shared, "step_time_s=0.08"))
    return run_once(start_video_edge(start_shared, replica)).address


async def watch(address: str, start: dict[str, Any]) -> dict[str, Any]:
    """Play a schedule of prompt updates and take all that comes, as existing clients do."""
    updates = list(UPDATES)
    got: dict[str, Any] = {"chunks": [], "video": b"", "queued": []}
    async with connect(f"ws://{address}/v1/realtime/video", max_size=None) as socket:
        await socket.send(json.dumps(start))
        first = json.loads(await socket.recv())
        assert first["type"] == "video.start", first
        got["start"] = first
        async for frame in socket:
            assert isinstance(frame, str)
            message = json.loads(frame)
            assert message["request_id"] == first["request_id"]
            match message["type"]:
                case "video.chunk_metadata":
                    data = await socket.recv()
                    assert isinstance(data, bytes)
                    assert len(data) == message["byte_length"]
                    got["chunks"].append(message)
                    got["video"] += data
                    if updates and len(got["chunks"]) == updates[0][0]:
                        _, prompt, chunks = updates.pop(0)
                        body = {"event": {"prompt": prompt}, "transition_chunks": chunks}
                        await socket.send(
                            json.dumps({"type": "session.interaction", "interaction": body})
                        )
                case "session.interaction.queued":
                    got["queued"].append(message["event_id"])
                case "session.done":
                    got["done"] = message
                case "error":
                    raise AssertionError(message["message"])
        got["close"] = socket.close_code
    return got


async def test_a_video_is_generated_and_steered(edge: str) -> None:
    """WEIR-156: the messages and order they rely on, with a model and parameters not served."""
    got = await watch(edge, existing_start())
    assert got["start"]["format"] == "m4s"
    assert got["done"]["chunks"] == len(got["chunks"])
    assert got["close"] == 1000
    assert [c["transport_chunk_index"] for c in got["chunks"]] == list(range(len(got["chunks"])))
    assert got["chunks"][-1]["kind"] == "trailer"
    assert sum(chunk["num_frames"] for chunk in got["chunks"]) == 99
    assert len(got["queued"]) == len(set(got["queued"])) == len(UPDATES)
    started = [e for chunk in got["chunks"] for e in chunk["started_event_ids"]]
    completed = [e for chunk in got["chunks"] for e in chunk["completed_event_ids"]]
    assert started == got["queued"]
    assert completed == got["queued"]


async def test_what_the_model_does_not_read_is_told(edge: str) -> None:
    """WEIR-141, WEIR-156: where such clients do not look, and nothing of it is passed on."""
    got = await watch(edge, existing_start())
    told = got["start"]["warnings"]
    assert "model is not served; pattern is used" in told
    assert "guidance_scale is ignored: the model does not read it" in told
    assert sum("session.start.extra_params." in warning for warning in told) == 3
    config = got["start"]["config"]
    assert (config["width"], config["height"], config["fps"]) == (640, 384, 16)
    assert (config["num_frames"], config["seed"]) == (99, 42)


async def test_the_saved_payloads_are_a_video(edge: str) -> None:
    """WEIR-156: they are joined as they came, and decode to all frames without an error."""
    got = await watch(edge, existing_start())
    with av.open(io.BytesIO(got["video"]), mode="r") as container:
        frames = list(container.decode(video=0))
    assert len(frames) == 99
    assert {(frame.width, frame.height) for frame in frames} == {(640, 384)}
