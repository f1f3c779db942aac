"""A WebSocket client of the speech endpoint that takes down when everything happened.

Owns: one streamed utterance in commitment mode and one buffered utterance, as records. Does not
own: the texts (`texts`), files and printing (`speech`). Uses nothing but the public protocol.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

UTTERANCE_TIMEOUT_S = 300.0
BYTES_PER_SAMPLE = 2

Message = dict[str, Any]


class DemonstrationError(Exception):
    """The services did not do what the protocol promises; the message says what."""


FAILURES = (DemonstrationError, WebSocketException, OSError, TimeoutError)
"""What ends one part of the demonstration and leaves the others going."""


@dataclass(slots=True)
class Segment:
    """One synthesized segment. Times are milliseconds since the first text was sent."""

    text: str
    source_start: int
    source_end: int
    submitted_ms: float
    text_sent_ms: float
    first_audio_ms: float | None = None
    pcm: bytearray = field(default_factory=bytearray)
    words: list[Message] | None = None


@dataclass(slots=True)
class Utterance:
    """One streamed utterance as it was heard. PCM is mono s16le."""

    segments: list[Segment] = field(default_factory=list)
    sample_rate_hz: int = 0
    text_sent_ms: float = 0.0
    warnings: list[str] = field(default_factory=list)

    def milliseconds(self, pcm: bytes | bytearray) -> float:
        """Return how long `pcm` sounds."""
        return len(pcm) / BYTES_PER_SAMPLE / self.sample_rate_hz * 1000

    @property
    def first_audio_ms(self) -> float:
        """When the first audio byte arrived."""
        times = [s.first_audio_ms for s in self.segments if s.first_audio_ms is not None]
        if not times:
            raise DemonstrationError("no audio arrived")
        return min(times)


class _Recorder:
    """Pairs what is sent with what comes back."""

    def __init__(self) -> None:
        self.utterance = Utterance()
        self._started = time.perf_counter()
        self._sent: list[tuple[int, float]] = []

    def now_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    def sent(self, characters: int) -> None:
        self._sent.append((characters, self.now_ms()))
        self.utterance.text_sent_ms = self._sent[-1][1]

    def on_start(self, message: Message) -> None:
        end = message["source_end"]
        sent_ms = next(when for characters, when in self._sent if characters >= end)
        self.utterance.sample_rate_hz = message["sample_rate"]
        self.utterance.warnings.extend(message.get("warnings", ()))
        self.utterance.segments.append(
            Segment(message["sentence_text"], message["source_start"], end, self.now_ms(), sent_ms)
        )

    def on_chunk(self, message: Message) -> None:
        segment = self.utterance.segments[message["sentence_index"]]
        audio = base64.b64decode(message["audio_b64"])
        if audio:
            if segment.first_audio_ms is None:
                segment.first_audio_ms = self.now_ms()
            segment.pcm += audio
        else:
            segment.words = message["timestamps"]


async def speak_streamed(
    url: str, config: Message, pieces: Iterable[str], interval_s: float
) -> Utterance:
    """Send `pieces` one by one and take down the utterance. Raises DemonstrationError."""
    async with asyncio.timeout(UTTERANCE_TIMEOUT_S), connect(url, max_size=None) as socket:
        await send(socket, "session.config", **config)
        recorder = _Recorder()
        feeding = asyncio.create_task(_feed(socket, recorder, pieces, interval_s))
        try:
            await _record(socket, recorder)
        finally:
            # What went wrong is what was received; that sending then ends is its consequence.
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        return recorder.utterance


async def speak_buffered(url: str, config: Message, text: str) -> bytes:
    """Send a whole text and return the one audio file that answers it."""
    async with asyncio.timeout(UTTERANCE_TIMEOUT_S), connect(url, max_size=None) as socket:
        await send(socket, "session.config", **config)
        await send(socket, "input.text", text=text)
        await send(socket, "input.done")
        files: list[bytes] = []
        async for received in socket:
            if isinstance(received, bytes):
                files.append(received)
            elif read_message(received)["type"] == "session.done":
                break
        if len(files) != 1:
            raise DemonstrationError(f"expected one audio file, got {len(files)}")
        return files[0]


async def _feed(
    socket: ClientConnection, recorder: _Recorder, pieces: Iterable[str], interval_s: float
) -> None:
    characters = 0
    for piece in pieces:
        characters += len(piece)
        recorder.sent(characters)
        await send(socket, "input.text", text=piece)
        await asyncio.sleep(interval_s)
    await send(socket, "input.done")


async def _record(socket: ClientConnection, recorder: _Recorder) -> None:
    async for received in socket:
        if isinstance(received, bytes):
            raise DemonstrationError("binary audio although word timestamps were asked for")
        message = read_message(received)
        match message["type"]:
            case "audio.start":
                recorder.on_start(message)
            case "audio.chunk":
                recorder.on_chunk(message)
            case "session.done":
                return
    raise DemonstrationError("the connection ended before the utterance was done")


async def send(socket: ClientConnection, kind: str, **fields: object) -> None:
    """Send one message of this type."""
    await socket.send(json.dumps({"type": kind, **fields}, ensure_ascii=False))


def read_message(text: str) -> Message:
    """Return a message of the server. Raises DemonstrationError for an error."""
    message: Message = json.loads(text)
    if message["type"] == "error":
        raise DemonstrationError(f"{message.get('code')}: {message['message']}")
    return message
