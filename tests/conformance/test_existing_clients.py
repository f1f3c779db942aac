"""Clients of the endpoint as they exist today run against the edge unchanged.

The client here knows only what such clients know: it sends the fields they send, ignores what it
does not know, and fails where one of them would.
"""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.integration.edge.suite import run_once, shared_processes, start_edge, start_tts

CONFIG: dict[str, Any] = {
    "type": "session.config",
    "speaker": "Vivian",
    "task_type": "CustomVoice",
    "language": "Auto",
    "response_format": "wav",
    "speed": 1.0,
}
TEXT = "Hello, this is a client that streams its text. It sends one word after the other."


@dataclass
class Reply:
    """What one utterance brought: a sentence is its text, its audio and whether it failed."""

    sentences: list[dict[str, Any]] = field(default_factory=list)
    done: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The endpoint of a running edge."""
    with shared_processes(show=lambda: request.session.testsfailed > 0) as start:
        tts = run_once(start_tts(start))
        edge = run_once(start_edge(start, tts))
        yield f"ws://{edge.address}/v1/audio/speech/stream"


async def stream_words(socket: ClientConnection, text: str) -> None:
    """Send text as a language model gives it: word by word, the space in front."""
    for index, word in enumerate(text.split(" ")):
        piece = word if index == 0 else f" {word}"
        await socket.send(json.dumps({"type": "input.text", "text": piece}))
    await socket.send(json.dumps({"type": "input.done"}))


async def receive(socket: ClientConnection) -> Reply:
    """Take messages until the session is done, as existing clients do."""
    reply = Reply()
    async for frame in socket:
        if isinstance(frame, bytes):
            reply.sentences[-1]["audio"] += frame
            reply.sentences[-1]["frames"] += 1
            continue
        message = json.loads(frame)
        match message["type"]:
            case "audio.start":
                assert message["sentence_index"] == len(reply.sentences)
                reply.sentences.append(
                    {**message, "audio": b"", "frames": 0, "chunks": [], "words": None}
                )
            case "audio.chunk":
                sentence = reply.sentences[message["sentence_index"]]
                sentence["audio"] += base64.b64decode(message["audio_b64"])
                sentence["chunks"].append(message)
                if message["timestamps"] is not None:
                    sentence["words"] = message["timestamps"]
            case "audio.done":
                assert message["error"] is False
                assert message["total_bytes"] == len(reply.sentences[-1]["audio"])
            case "session.done":
                reply.done = message
                return reply
            case "error":
                raise AssertionError(message["message"])
    raise AssertionError("the connection ended before session.done")


def duration_s(wav: bytes) -> float:
    """Return how long a WAV file sounds."""
    with wave.open(io.BytesIO(wav), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getnframes() / file.getframerate()


async def test_a_text_sent_word_by_word_comes_back_as_a_wav_file(url: str) -> None:
    """WEIR-156: the plainest use, with the voice and options such clients name."""
    async with connect(url) as socket:
        await socket.send(json.dumps(CONFIG))
        await stream_words(socket, TEXT)
        reply = await receive(socket)
    assert reply.done["total_sentences"] == len(reply.sentences) == 1
    (sentence,) = reply.sentences
    assert sentence["sentence_text"] == TEXT
    assert sentence["format"] == "wav"
    assert sentence["frames"] == 1
    assert duration_s(sentence["audio"]) == pytest.approx(len(TEXT) * 0.06, abs=0.001)


@pytest.mark.parametrize("granularity", ["sentence", "clause"])
async def test_a_split_text_comes_back_as_one_file_a_piece(url: str, granularity: str) -> None:
    """WEIR-156: each piece is a whole file of its own, in order."""
    async with connect(url) as socket:
        await socket.send(json.dumps({**CONFIG, "split_granularity": granularity}))
        await stream_words(socket, TEXT)
        reply = await receive(socket)
    expected = {
        "sentence": [
            "Hello, this is a client that streams its text.",
            " It sends one word after the other.",
        ],
        "clause": [
            "Hello,",
            " this is a client that streams its text.",
            " It sends one word after the other.",
        ],
    }[granularity]
    assert [s["sentence_text"] for s in reply.sentences] == expected
    for sentence, text in zip(reply.sentences, expected, strict=True):
        assert duration_s(sentence["audio"]) == pytest.approx(len(text) * 0.06, abs=0.001)


async def test_a_second_utterance_goes_over_the_same_connection(url: str) -> None:
    """WEIR-156: with the configuration of the first one, or another."""
    async with connect(url) as socket:
        await socket.send(json.dumps(CONFIG))
        for index, text in enumerate(["The first one.", "The second one."]):
            await stream_words(socket, text)
            reply = await receive(socket)
            assert reply.done["utterance_index"] == index
            assert [s["sentence_text"] for s in reply.sentences] == [text]
        await socket.send(json.dumps({**CONFIG, "response_format": "flac"}))
        await stream_words(socket, "The third one.")
        reply = await receive(socket)
    assert reply.sentences[0]["format"] == "flac"
    assert reply.sentences[0]["audio"].startswith(b"fLaC")


async def test_raw_audio_is_streamed_in_chunks(url: str) -> None:
    """WEIR-156: `stream_audio` with `pcm`: several binary frames, s16le at the announced rate."""
    config = {**CONFIG, "response_format": "pcm", "stream_audio": True}
    async with connect(url) as socket:
        await socket.send(json.dumps(config))
        await stream_words(socket, TEXT)
        reply = await receive(socket)
    (sentence,) = reply.sentences
    assert sentence["frames"] > 1
    seconds = len(sentence["audio"]) / 2 / sentence["channels"] / sentence["sample_rate"]
    assert seconds == pytest.approx(len(TEXT) * 0.06, abs=0.001)


async def test_word_timestamps_come_with_the_chunks(url: str) -> None:
    """WEIR-156: audio in JSON, then the words of the sentence with times within its audio."""
    config = {**CONFIG, "response_format": "pcm", "stream_audio": True, "word_timestamps": True}
    async with connect(url) as socket:
        await socket.send(json.dumps(config))
        await stream_words(socket, TEXT)
        reply = await receive(socket)
    (sentence,) = reply.sentences
    assert sentence["frames"] == 0
    words = sentence["words"]
    assert [w["word"].strip(",.") for w in words] == [w.strip(",.") for w in TEXT.split()]
    assert all(w["start_ms"] <= w["end_ms"] for w in words)
    assert [w["start_ms"] for w in words] == sorted(w["start_ms"] for w in words)
    assert words[-1]["end_ms"] <= sentence["chunks"][-1]["chunk_end_ms"]


async def test_an_utterance_with_nothing_in_it_is_done_at_once(url: str) -> None:
    """WEIR-156: such clients send an end of input whatever came before it."""
    async with connect(url) as socket:
        await socket.send(json.dumps(CONFIG))
        await socket.send(json.dumps({"type": "input.done"}))
        reply = await receive(socket)
    assert reply.sentences == []
    assert reply.done["total_sentences"] == 0


async def test_a_voice_that_is_not_served_is_replaced_with_a_word_about_it(url: str) -> None:
    """WEIR-141: a client that names another deployment's voice is served all the same."""
    async with connect(url) as socket:
        await socket.send(json.dumps(CONFIG))
        await stream_words(socket, "Hi.")
        (sentence,) = (await receive(socket)).sentences
    assert any("voice" in warning for warning in sentence["warnings"])


async def test_defaults_of_a_connection_suit_an_unconfigured_client_library(url: str) -> None:
    """WEIR-156: with the compression and pings that the library offers by itself."""
    async with connect(url, compression="deflate", ping_interval=0.05, ping_timeout=2) as socket:
        await socket.send(json.dumps(CONFIG))
        await stream_words(socket, TEXT * 3)
        reply = await receive(socket)
    assert duration_s(reply.sentences[0]["audio"]) > 14
