"""Barge-in, pings, failures and the polite end, over a real connection."""

from __future__ import annotations

import pytest

from tests.integration.edge.client import COMMITTED, STREAMED, Frame, connected
from tests.integration.edge.conftest import FAULT
from tests.integration.edge.suite import metric, until_metric
from tests.processes import ServiceProcess

LONG = "This sentence takes quite a while to speak, far longer than any test would wait for it."
MODES = [STREAMED, COMMITTED, {"response_format": "wav"}]


def kinds(frames: list[Frame]) -> list[str]:
    """Return the type of every frame."""
    return ["audio" if isinstance(frame, bytes) else str(frame["type"]) for frame in frames]


@pytest.mark.parametrize("config", MODES, ids=["streamed", "committed", "file"])
async def test_a_cancel_ends_the_utterance_and_keeps_the_connection(
    slow_edge: str, config: dict[str, object]
) -> None:
    """WEIR-151: nothing of the cancelled utterance follows; the next one has the next index."""
    async with connected(slow_edge, config) as client:
        await client.text(LONG)
        await client.send("input.done")
        await client.message("audio.start")
        await client.send("input.cancel")
        await client.text("New")  # opens the next utterance before the answer has arrived
        frames = await client.until("input.cancelled")
        assert set(kinds(frames)) <= {"audio", "input.cancelled"}
        answer = frames[-1]
        assert isinstance(answer, dict)
        assert answer["utterance_index"] == 0
        assert answer["submitted_until"] == len(LONG)
        await client.send("input.done")
        heard = await client.hear()
    assert heard.done["utterance_index"] == 1
    assert heard.texts == ["New"]


async def test_a_cancel_tells_how_much_audio_had_been_sent(slow_edge: str) -> None:
    """WEIR-151: `sent_ms` is the length of the audio in front of the answer."""
    async with connected(slow_edge, {**STREAMED, "sample_rate": 8000}) as client:
        await client.text(LONG)
        await client.send("input.done")
        frames = await client.until("audio.start")
        while not any(isinstance(frame, bytes) for frame in frames):
            frames.append(await client.next())
        await client.send("input.cancel")
        frames += await client.until("input.cancelled")
    sent = sum(len(frame) for frame in frames if isinstance(frame, bytes))
    answer = frames[-1]
    assert isinstance(answer, dict)
    assert answer["sent_ms"] == pytest.approx(sent / 2 / 8000 * 1000, abs=1)
    assert 0 < answer["sent_ms"] < len(LONG) * 60 / 2


async def test_a_cancel_frees_the_slot_within_a_step(
    slow_edge: str, slow_tone: ServiceProcess
) -> None:
    """WEIR-163: the adapter stops, and no more than one step is spoken for nobody."""
    await until_metric(slow_tone, "weir_tts_busy_slots", 0)
    wasted = await metric(slow_tone, "weir_tts_wasted_audio_seconds_total")
    async with connected(slow_edge, STREAMED) as client:
        await client.text(LONG)
        await client.send("input.done")
        await client.message("audio.start")
        await until_metric(slow_tone, "weir_tts_busy_slots", 1)
        await client.send("input.cancel")
        await client.until("input.cancelled")
        await until_metric(slow_tone, "weir_tts_busy_slots", 0, 1.0)
    wasted = await metric(slow_tone, "weir_tts_wasted_audio_seconds_total") - wasted
    assert wasted <= 0.06 + 1e-6


async def test_a_cancel_with_nothing_open_consumes_no_index(edge: str) -> None:
    """WEIR-151: it is answered all the same."""
    async with connected(edge, STREAMED) as client:
        await client.send("input.cancel", played_ms=12.5)
        answer = await client.message("input.cancelled")
        assert answer["utterance_index"] is None
        assert (answer["submitted_until"], answer["sent_ms"]) == (0, 0)
        assert (await client.say("Hi.")).done["utterance_index"] == 0


async def test_a_cancel_of_text_that_was_not_submitted_discards_it(edge: str) -> None:
    """WEIR-151: in buffered mode the text waits for the end of input, and goes with the cancel."""
    async with connected(edge, STREAMED) as client:
        await client.text("Forget this. ")
        await client.send("input.cancel")
        answer = await client.message("input.cancelled")
        assert (answer["utterance_index"], answer["submitted_until"]) == (0, 0)
        heard = await client.say("Say this.")
    assert heard.texts == ["Say this."]
    assert heard.done["utterance_index"] == 1


async def test_a_ping_is_answered_while_an_utterance_is_spoken(slow_edge: str) -> None:
    """WEIR-162: the reader never waits for synthesis."""
    async with connected(slow_edge, {"response_format": "wav"}) as client:
        await client.text(LONG)
        await client.send("input.done")
        await client.message("audio.start")
        for _ in range(3):
            await client.pong()
        await client.send("input.cancel")
        await client.message("input.cancelled")


async def test_a_close_discards_everything_and_says_nothing_more(
    slow_edge: str, slow_tone: ServiceProcess
) -> None:
    """WEIR-151: `session.close` ends with 1000; audio that waits is not sent."""
    async with connected(slow_edge, STREAMED) as client:
        await client.text(LONG)
        await client.send("input.done")
        await client.message("audio.start")
        await client.send("session.close")
        code, reason, frames = await client.closed()
    assert (code, reason) == (1000, "")
    assert all(isinstance(frame, bytes) for frame in frames)
    await until_metric(slow_tone, "weir_tts_busy_slots", 0, 1.0)


async def test_a_close_needs_no_configuration(edge: str) -> None:
    """WEIR-151: a peer that changes its mind goes in peace."""
    async with connected(edge) as client:
        await client.send("session.close")
        assert await client.closed() == (1000, "", [])


@pytest.mark.parametrize("config", MODES, ids=["streamed", "committed", "file"])
async def test_a_failed_segment_fails_its_utterance_alone(
    edge: str, config: dict[str, object]
) -> None:
    """IO-INV-103: error, end, later segments never start, text is refused until its end."""
    streamed = bool(config.get("stream_audio"))
    async with connected(edge, {**config, "split_granularity": None}) as client:
        await client.text(f"This one is {FAULT}. ")
        if config is not COMMITTED:
            await client.send("input.done")
        frames = await client.until("audio.done")
        error = next(f for f in frames if isinstance(f, dict) and f["type"] == "error")
        assert error["code"] == "segment_failed"
        assert error["utterance_index"] == error["segment_index"] == 0
        start = frames[0]
        assert isinstance(start, dict)
        assert error["request_id"] == start["request_id"]
        # Only bytes that had gone out have to be thrown away; a file goes out whole or not at all.
        discard = (error.get("partial_audio"), error.get("action"))
        assert discard == ((True, "discard") if streamed else (None, None))
        assert isinstance(frames[-1], dict)
        assert frames[-1]["error"] is True
        if config is COMMITTED:
            await client.text("More text. ")
            await client.error("utterance_failed")
            await client.send("input.done")
        done = await client.message("session.done")
        assert (done["utterance_index"], done["total_sentences"]) == (0, 1)
        assert (await client.say("This one is fine.")).texts == ["This one is fine."]


async def test_segments_behind_a_failed_one_never_start(edge: str) -> None:
    """IO-INV-103: whatever was staged is dropped, and nothing else is reported about it."""
    config = {**STREAMED, "split_granularity": "sentence"}
    async with connected(edge, config) as client:
        heard = await client.say(f"One. This is {FAULT}. Three. Four.")
    assert heard.texts == ["One.", f" This is {FAULT}."]
    assert heard.segments[0].error is None
    assert heard.segments[1].error is not None
    assert not heard.errors


async def test_text_after_the_end_of_input_is_refused_until_it_is_done(slow_edge: str) -> None:
    """IO-INV-103: a second end as well; the utterance itself goes on."""
    async with connected(slow_edge, STREAMED) as client:
        await client.text("Hello there.")
        await client.send("input.done")
        await client.text(" Too late.")
        await client.send("input.done")
        heard = await client.hear()
    assert heard.texts == ["Hello there."]
    assert [error["code"] for error in heard.errors] == ["session_state"] * 2


@pytest.mark.parametrize("kind", ["input.commit", "input.explain"])
async def test_what_is_not_offered_is_said_so(edge: str, kind: str) -> None:
    """WEIR-140: a message without effect is an error, not a silence."""
    async with connected(edge, STREAMED) as client:
        await client.send(kind)
        await client.error("unsupported_option")
        assert (await client.say("Hi.")).texts == ["Hi."]
