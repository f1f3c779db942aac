"""A WebSocket client of the speech endpoint for tests, and the reading of what it heard.

Owns: sending, bounded waiting, and the order rules that hold for every utterance. Does not own: the
processes it talks to (`suite`). It uses the public protocol alone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

PATIENCE_S = 20.0
"""How long a test waits for what has to come."""

Message = dict[str, Any]
Frame = Message | bytes

STREAMED: Message = {"response_format": "pcm", "stream_audio": True}
COMMITTED: Message = {**STREAMED, "text_input_mode": "commitment", "language": "English"}


@dataclass
class Segment:
    """One segment as it was heard; `error` is the error message between start and done."""

    start: Message
    chunks: list[bytes] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    error: Message | None = None
    done: Message = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The source text it speaks."""
        return str(self.start["sentence_text"])

    @property
    def audio(self) -> bytes:
        """All its audio, binary or from JSON."""
        in_json = (base64.b64decode(message["audio_b64"]) for message in self.messages)
        return b"".join([*self.chunks, *in_json])


@dataclass
class Heard:
    """One utterance; `errors` are those outside a started segment."""

    segments: list[Segment]
    errors: list[Message]
    done: Message

    @property
    def texts(self) -> list[str]:
        """The text of every segment."""
        return [segment.text for segment in self.segments]

    @property
    def audio(self) -> bytes:
        """The audio of all segments."""
        return b"".join(segment.audio for segment in self.segments)


class SpeechClient:
    """One connection. Every wait is bounded by PATIENCE_S unless told otherwise."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, kind: str, **fields: object) -> None:
        """Send one message."""
        await self.socket.send(json.dumps({"type": kind, **fields}, ensure_ascii=False))

    async def configure(self, **fields: object) -> None:
        """Send a configuration; what it is refused with comes as the next message."""
        await self.send("session.config", **fields)

    async def text(self, *pieces: str) -> None:
        """Send source text, a message a piece."""
        for piece in pieces:
            await self.send("input.text", text=piece)

    async def next(self, timeout_s: float = PATIENCE_S) -> Frame:
        """Return the next frame. Raises ConnectionClosed when there is none."""
        async with asyncio.timeout(timeout_s):
            frame = await self.socket.recv()
        if isinstance(frame, bytes):
            return frame
        message: Message = json.loads(frame)
        return message

    async def message(self, kind: str, timeout_s: float = PATIENCE_S) -> Message:
        """Return the next frame, which must be a message of this type."""
        frame = await self.next(timeout_s)
        assert isinstance(frame, dict), f"audio came instead of {kind}"
        assert frame["type"] == kind, frame
        return frame

    async def until(self, kind: str, timeout_s: float = PATIENCE_S) -> list[Frame]:
        """Return all frames up to and with the first message of this type."""
        frames: list[Frame] = []
        async with asyncio.timeout(timeout_s):
            while not (frames and isinstance(frames[-1], dict) and frames[-1]["type"] == kind):
                frames.append(await self.next(timeout_s))
        return frames

    async def hear(self, timeout_s: float = PATIENCE_S) -> Heard:
        """Return the utterance that ends with the next `session.done`."""
        return read_utterance(await self.until("session.done", timeout_s))

    async def say(self, *pieces: str, timeout_s: float = PATIENCE_S) -> Heard:
        """Speak one utterance from its first text to its end."""
        await self.text(*pieces)
        await self.send("input.done")
        return await self.hear(timeout_s)

    async def error(self, code: str) -> Message:
        """Return the next frame, which must be an error with this code."""
        message = await self.message("error")
        assert message["code"] == code, message
        return message

    async def pong(self, timeout_s: float = PATIENCE_S) -> None:
        """Ping; nothing else may come before the answer."""
        await self.send("session.ping")
        await self.message("session.pong", timeout_s)

    async def closed(self, timeout_s: float = PATIENCE_S) -> tuple[int, str, list[Frame]]:
        """Wait for the server's close; return its code, its reason and what came before."""
        frames: list[Frame] = []
        async with asyncio.timeout(timeout_s):
            with contextlib.suppress(ConnectionClosed):
                while True:
                    frames.append(await self.next(timeout_s))
        code, reason = self.socket.close_code, self.socket.close_reason
        assert code is not None
        assert code != 1006, "the connection ended without a close frame"
        return code, reason or "", frames


@asynccontextmanager
async def connected(
    address: str, config: Message | None = None, **options: Any
) -> AsyncIterator[SpeechClient]:
    """Connect to the edge at `host:port`; send `config` when there is one."""
    options.setdefault("max_size", None)
    options.setdefault("compression", None)
    # Tests watch what the server does with a peer; the client's own pings would disturb that.
    options.setdefault("ping_interval", None)
    options.setdefault("close_timeout", 2)
    url = f"ws://{address}/v1/audio/speech/stream"
    async with connect(url, **options) as socket:
        client = SpeechClient(socket)
        if config is not None:
            await client.configure(**config)
        yield client


def read_utterance(frames: Sequence[Frame]) -> Heard:
    """Sort the frames of one utterance. Fails when the order of the protocol is broken.

    A segment is start, payload, perhaps an error, done; segments never interleave; the indices
    count; `session.done` comes last and counts the starts (IO-INV-101).
    """
    *body, done = frames
    assert isinstance(done, dict)
    heard = Heard([], [], done)
    current: Segment | None = None
    for frame in body:
        if isinstance(frame, bytes):
            assert current is not None, "audio outside a segment"
            assert current.error is None, "audio after the error of its segment"
            current.chunks.append(frame)
            continue
        match frame["type"]:
            case "audio.start":
                assert current is None, "a segment starts within another"
                assert frame["sentence_index"] == len(heard.segments)
                assert frame["utterance_index"] == done["utterance_index"]
                current = Segment(frame)
                heard.segments.append(current)
            case "audio.chunk":
                assert current is not None
                current.messages.append(frame)
            case "audio.done":
                assert current is not None, "the end of a segment that has not started"
                assert frame["sentence_index"] == current.start["sentence_index"]
                assert frame["error"] is (current.error is not None)
                assert frame["total_bytes"] == len(current.audio)
                current.done, current = frame, None
            case "error" if current is not None and "segment_index" in frame:
                current.error = frame
            case "error":
                heard.errors.append(frame)
            case other:
                raise AssertionError(f"{other} within an utterance")
    assert current is None, "a segment has no end"
    assert done["total_sentences"] == len(heard.segments)
    return heard
