"""Steering a video while it comes: interactions, pause, playback, stop."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.integration.edge.client import Message
from tests.integration.edge_video.client import watching
from tests.integration.edge_video.suite import chunks_made
from tests.processes import ServiceProcess


def error_of(messages: list[Message], code: str) -> Message:
    """Return the one error with this code."""
    (error,) = [m for m in messages if m["type"] == "error" and m["code"] == code]
    return error


async def test_a_prompt_turns_over_its_chunks(edge: str) -> None:
    """WEIR-143: started, active, completed, with the progress of each chunk."""
    async with watching(edge) as client:
        await client.start(num_frames=141)
        await client.chunk()
        await client.interact("a", transition_chunks=3)
        seen, code = await client.finish()
    assert code == 1000
    affected = [chunk for chunk in seen.media if chunk["active_event_ids"]]
    assert [chunk["prompt_progress"] for chunk in affected] == [
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
        1.0,
    ]
    assert affected[0]["started_event_ids"] == ["a"]
    assert affected[-1]["completed_event_ids"] == ["a"]
    assert seen.frames == 141


async def test_answers_never_come_between_metadata_and_binary(edge: str) -> None:
    """WEIR-168, WEIR-166, WEIR-167: under a hammer of interactions and pings."""
    async with watching(edge) as client:
        await client.start(endless=True)
        numbers = itertools.count()

        async def hammer() -> None:
            while len(client.seen.media) < 12:
                await client.interact(f"e-{next(numbers)}", transition_chunks=next(numbers) % 3)
                await client.send("session.ping")
                await asyncio.sleep(0)  # lets the reader count
            await client.send("session.stop")

        hammering = asyncio.create_task(hammer())
        seen, code = await client.finish()
        await hammering
    assert code == 1000
    asked = next(numbers) // 2
    assert len(seen.of("session.pong")) == asked > 12
    refused = [m for m in seen.of("error") if m["code"] in ("overloaded", "session_state")]
    assert len(seen.queued) + len(refused) == asked
    assert seen.terminal is not None
    assert seen.terminal["stopped"] is True


async def test_every_kind_of_refusal_is_correlated(edge: str) -> None:
    """WEIR-164, WEIR-166: syntax, conflict, a prompt that cannot be read, an unknown field."""
    async with watching(edge) as client:
        await client.start(endless=True)
        await client.interact("bad", transition_chunks=2.5)
        await client.interact("same", "#000001")
        await client.interact("same", "#000001")
        await client.interact("same", "#000002")
        await client.interact("unread", "unreadable")
        body = {"event_id": "styled", "event": {"prompt": "#000003", "style": "oil"}}
        await client.send("session.interaction", interaction=body)
        await client.until("session.interaction.queued")
        while len(client.seen.of("error")) < 4:
            await client.next()
        await client.send("session.stop")
        seen, code = await client.finish()
    assert code == 1000
    errors = {(m["event_id"], m["code"]) for m in seen.of("error")}
    assert errors == {
        ("bad", "invalid_message"),
        ("same", "event_id_conflict"),
        ("unread", "interaction_failed"),
        ("styled", "interaction_failed"),
    }
    queued = [m["event_id"] for m in seen.of("session.interaction.queued")]
    assert sorted(queued) == ["same", "same", "styled", "unread"]
    assert seen.ended["unread"] == seen.ended["styled"] == "failed"


async def test_fields_that_a_model_declares_reach_it(edge: str) -> None:
    """WEIR-164: `brightness` is one of the pattern adapter's."""
    async with watching(edge) as client:
        await client.start(endless=True)
        body = {"event_id": "b", "event": {"prompt": "#ffffff", "brightness": 0.5}}
        await client.send("session.interaction", interaction={**body, "transition_chunks": 0})
        while not any(chunk["completed_event_ids"] for chunk in client.seen.chunks):
            await client.chunk()
        await client.send("session.stop")
        seen, _ = await client.finish()
    assert seen.ended == {"b": "completed"}


async def test_interactions_outside_a_video_are_refused(edge: str) -> None:
    """WEIR-176: before the start and after a stop, correlated; the id may be used afterwards."""
    async with watching(edge) as client:
        await client.interact("a")
        assert (await client.error("session_state"))["event_id"] == "a"
        await client.start(endless=True)
        await client.interact("a")
        await client.until("session.interaction.queued")
        await client.send("session.stop")
        await client.interact("late")
        seen, code = await client.finish()
    assert code == 1000
    assert error_of(seen.messages[1:], "session_state")["event_id"] == "late"
    assert seen.queued == ["a"]


async def test_a_paused_video_stands_still_until_it_is_resumed(
    edge: str, replica: ServiceProcess
) -> None:
    """WEIR-154: no chunk between the two answers, and the service makes none."""
    async with watching(edge) as client:
        await client.start(endless=True)
        await client.chunk()
        await client.send("session.pause")
        await client.until("session.paused")
        made = await chunks_made(replica)
        await client.pong()
        assert await chunks_made(replica) == made
        await client.send("session.resume")
        await client.message("session.resumed")
        await client.chunk()
        await client.send("session.stop")
        _, code = await client.finish()
    assert code == 1000


async def test_generation_follows_playback(edge: str, replica: ServiceProcess) -> None:
    """WEIR-223: with the pace realtime the lead is kept, and a report lets it go on."""
    async with watching(edge) as client:
        await client.start(endless=True, pace="realtime", lead_seconds=1)
        await client.send("session.playback", position_seconds=0)
        # 9 + 12 frames at 24 a second; the chunk after them would end beyond a second.
        await client.chunk()
        await client.chunk()
        made = await chunks_made(replica)
        await client.pong()
        assert await chunks_made(replica) == made
        await client.send("session.playback", position_seconds=1)
        for _ in range(2):
            await client.chunk()
        await client.send("session.stop")
        seen, code = await client.finish()
    assert code == 1000
    assert seen.terminal is not None
    assert seen.terminal["stopped"] is True


async def test_a_stop_ends_with_the_trailer(edge: str) -> None:
    """IO-INV-101: the chunk in progress is delivered whole."""
    async with watching(edge) as client:
        await client.start(endless=True)
        for _ in range(3):
            await client.chunk()
        await client.send("session.stop")
        seen, code = await client.finish()
    assert code == 1000
    assert seen.chunks[-1]["kind"] == "trailer"
    assert seen.terminal is not None
    assert seen.terminal["chunks"] == len(seen.chunks)


MISUSE: list[tuple[dict[str, Any] | bytes, str]] = [
    (b"\0\1", "invalid_message"),
    ({"type": "session.pong"}, "invalid_message"),
    ({"type": "session.start", "prompt": "Again."}, "session_state"),
    ({"type": "session.playback", "position_seconds": -1}, "invalid_message"),
]


@pytest.mark.parametrize(("frame", "code"), MISUSE)
async def test_misuse_ends_nothing(edge: str, frame: dict[str, Any] | bytes, code: str) -> None:
    """WEIR-152: an error, and the video goes on."""
    async with watching(edge) as client:
        await client.start(num_frames=45)
        if isinstance(frame, bytes):
            await client.socket.send(frame)
        else:
            await client.send(
                **{"kind": frame["type"], **{k: v for k, v in frame.items() if k != "type"}}
            )
        seen, close = await client.finish()
    assert close == 1000
    assert error_of(seen.messages, code)
    assert seen.frames == 45
