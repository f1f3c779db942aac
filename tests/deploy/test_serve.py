"""`make serve` without make: it is ready when it says so, and ends without leaving anything."""

from __future__ import annotations

import contextlib
import json
import signal

import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.deploy.tools_runs import ToolRun, tool
from tools.serve import settings
from tools.stack import edge_is_ready

SERVICES = {"services.tts", "services.video", "services.edge"}
NOBODY = "127.0.0.1:9"


async def ready_url(run: ToolRun) -> str:
    """Wait for the announcement; return the WebSocket address in it."""
    return (await run.line("ready  speech")).split()[-1]


async def message_types(socket: ClientConnection) -> list[str]:
    """Receive until the connection is closed; return the types of the JSON messages."""
    kinds: list[str] = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            message = await socket.recv()
            if isinstance(message, str):
                kinds.append(json.loads(message)["type"])
    return kinds


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_everything_in_order(number: signal.Signals) -> None:
    """WEIR-380, WEIR-381: the edge ends first, no process is left, and that is a success."""
    async with tool("tools.serve") as run:
        await ready_url(run)
        started = run.services()
        assert set(started) == SERVICES
        run.signal(number)
        assert await run.ended() == 0
        assert not any(process.is_running() for process in started.values())
        assert run.lines[-1] == "stopped"
        stops = [line for line in run.lines if '"event":"stopped"' in line.replace(" ", "")]
        assert [line.split()[0] for line in stops] == ["edge", "video", "tts"]


async def test_ready_is_said_when_a_session_can_be_held() -> None:
    """WEIR-382: whoever reads the line can connect at once."""
    async with tool("tools.serve") as run, connect(await ready_url(run)) as socket:
        await socket.send(json.dumps({"type": "session.config"}))
        await socket.send(json.dumps({"type": "input.done"}))
        assert json.loads(await socket.recv())["type"] == "session.done"


async def test_ready_is_said_when_a_video_can_be_made() -> None:
    """WEIR-382: the video service counts like the speech service."""
    async with tool("tools.serve") as run:
        url = (await run.line("ready  video")).split()[-1]
        async with connect(url) as socket:
            start = {"type": "session.start", "prompt": "A red kite", "num_frames": 3}
            await socket.send(json.dumps(start))
            kinds = await message_types(socket)
    assert kinds == [
        "video.start",
        *("video.chunk_metadata", "video.chunk_metadata"),
        "session.done",
    ]


@pytest.mark.parametrize(
    ("elsewhere", "started"),
    [
        ({"EDGE_TTS_TARGETS": NOBODY}, {"services.edge", "services.video"}),
        ({"EDGE_VIDEO_TARGETS": NOBODY}, {"services.edge", "services.tts"}),
        ({"EDGE_TTS_TARGETS": NOBODY, "EDGE_VIDEO_TARGETS": NOBODY}, {"services.edge"}),
    ],
    ids=["no-speech", "no-video", "neither"],
)
async def test_ready_is_not_said_before(elsewhere: dict[str, str], started: set[str]) -> None:
    """WEIR-382: an edge without one of its services listens, and ready is not said.

    A service that is elsewhere is not started here.
    """
    async with tool("tools.serve", **elsewhere) as run:
        line = await run.line("edge  | {")
        while '"event":"ready"' not in line:
            line = await run.line("edge  | {")
        address = json.loads(line.partition("| ")[2])["address"]
        assert not edge_is_ready(address)
        assert set(run.services()) == started
        run.signal(signal.SIGTERM)
        assert await run.ended() == 0
        assert not any(line.startswith("ready") for line in run.lines)


async def test_an_open_utterance_is_spoken_to_its_end() -> None:
    """WEIR-381: the speech service outlives the edge's drain."""
    slow = "real_time_factor=0.2"
    async with (
        tool("tools.serve", TTS_ADAPTER_OPTIONS=slow) as run,
        connect(await ready_url(run)) as socket,
    ):
        config = {"text_input_mode": "commitment", "language": "English"}
        await socket.send(json.dumps({"type": "session.config", **config}))
        text = "The first sentence is spoken now. The second is not submitted yet. "
        await socket.send(json.dumps({"type": "input.text", "text": text}))
        assert json.loads(await socket.recv())["type"] == "audio.start"
        run.signal(signal.SIGTERM)
        await run.line("stopping")
        await socket.send(json.dumps({"type": "input.done"}))
        kinds = await message_types(socket)
        assert kinds == ["audio.done", "audio.start", "audio.done", "session.done", "error"]
        assert socket.close_code == 1012
        assert await run.ended() == 0


@pytest.mark.parametrize("module", sorted(SERVICES))
async def test_a_process_that_dies_ends_the_rest(module: str) -> None:
    """WEIR-380: half a suite is not left running, and the exit status tells."""
    async with tool("tools.serve") as run:
        await ready_url(run)
        started = run.services()
        started[module].send_signal(signal.SIGKILL)
        assert await run.ended() == 1
        assert f"{module} ended by itself with status -9" in run.printed
        assert not any(process.is_running() for process in started.values())


async def test_a_setting_that_is_refused_is_shown_and_ends_it() -> None:
    """WEIR-050: the reason stands where the person who started it looks."""
    async with tool("tools.serve", EDGE_PRT="9000") as run:
        assert await run.ended() == 1
        assert "did you mean EDGE_PORT" in run.printed
        assert "services.edge ended with status 2 before it was ready" in run.printed


async def test_a_signal_before_it_is_ready_ends_it() -> None:
    """WEIR-380: also while a model is still being loaded."""
    async with tool("tools.serve", TTS_ADAPTER_OPTIONS="load_time_s=600") as run:
        await run.line("tts   | {")
        started = run.services()
        run.signal(signal.SIGTERM)
        assert await run.ended() == 0
        assert started
        assert not any(psutil.pid_exists(process.pid) for process in started.values())


def test_a_port_that_was_asked_for_is_kept() -> None:
    """WEIR-382: nothing else is chosen silently; an empty value counts as none."""
    asked = {"TTS_PORT": "6000", "VIDEO_PORT": "6001", "EDGE_PORT": "7000"}
    assert settings(asked) == asked
    assert settings({"EDGE_PORT": ""})["EDGE_PORT"] == "8000"
