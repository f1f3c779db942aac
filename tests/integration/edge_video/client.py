"""A WebSocket client of the video endpoint for tests, and the laws that hold for all it sees.

Owns: sending, bounded waiting, and checking every frame as it comes: metadata and binary are one
pair, payloads are numbered, every queued interaction ends once. Does not own: the processes it
talks to. It uses the public protocol alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.integration.edge.client import PATIENCE_S, Frame, Message, SpeechClient

ENDED_IN_CHUNKS = ("completed_event_ids", "superseded_event_ids")
LEFT_OVER = ("superseded_event_ids", "unfinished_event_ids")


@dataclass
class Seen:
    """What a client has seen so far; `ended` says how each interaction ended."""

    start: Message = field(default_factory=dict)
    chunks: list[Message] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    queued: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    terminal: Message | None = None

    @property
    def frames(self) -> int:
        """Frames of video."""
        return sum(chunk["num_frames"] for chunk in self.chunks)

    @property
    def media(self) -> list[Message]:
        """The metadata of the media chunks."""
        return [chunk for chunk in self.chunks if chunk["kind"] == "media"]

    def of(self, kind: str) -> list[Message]:
        """The messages of one type, in order."""
        return [message for message in self.messages if message["type"] == kind]

    def take(self, frame: Frame) -> None:
        """Read the next frame. Fails when the protocol is broken."""
        due = len(self.chunks) > len(self.payloads)
        if isinstance(frame, bytes):
            assert due, "a binary without metadata"
            assert frame
            assert len(frame) == self.chunks[-1]["byte_length"]
            self.payloads.append(frame)
            return
        # WEIR-168
        assert not due, f"{frame['type']} between metadata and its binary"
        assert self.terminal is None, "something follows the terminal"
        self.messages.append(frame)
        if self.start:
            assert frame["request_id"] == self.start["request_id"]
        match frame["type"]:
            case "video.start":
                assert not self.start
                self.start = frame
            case "video.chunk_metadata":
                self._take_chunk(frame)
            case "session.interaction.queued":
                if frame["event_id"] not in self.queued:
                    self.queued.append(frame["event_id"])
            case "session.done":
                assert frame["chunks"] == len(self.payloads)
                self._end(frame, LEFT_OVER)
                self.terminal = frame
            case "error" if frame["code"] == "interaction_failed":
                self.ended.setdefault(frame["event_id"], "failed")
            case "error" if "unfinished_event_ids" in frame:
                self._end(frame, LEFT_OVER)
                self.terminal = frame

    def settled(self) -> None:
        """Check that every queued interaction has ended, and no other."""
        assert sorted(self.ended) == sorted(self.queued)  # WEIR-167

    def _take_chunk(self, chunk: Message) -> None:
        assert chunk["transport_chunk_index"] == len(self.chunks)
        for event_id in (*chunk["started_event_ids"], *chunk["active_event_ids"]):
            assert event_id in self.queued
            assert event_id not in self.ended
        self._end(chunk, ENDED_IN_CHUNKS)
        self.chunks.append(chunk)

    def _end(self, message: Message, lists: tuple[str, ...]) -> None:
        for name in lists:
            for event_id in message[name]:
                assert event_id in self.queued
                assert event_id not in self.ended, f"{event_id} ends twice"
                self.ended[event_id] = name.removesuffix("_event_ids")


class VideoClient(SpeechClient):
    """One connection, every frame of which is checked. Waits are bounded by PATIENCE_S."""

    def __init__(self, socket: ClientConnection) -> None:
        super().__init__(socket)
        self.seen = Seen()

    async def next(self, timeout_s: float = PATIENCE_S) -> Frame:
        """Return the next frame. Raises ConnectionClosed when there is none."""
        frame = await super().next(timeout_s)
        self.seen.take(frame)
        return frame

    async def start(self, prompt: str = "#336699", **fields: Any) -> Message:
        """Start a video and return its `video.start`."""
        await self.send("session.start", prompt=prompt, **fields)
        return await self.message("video.start")

    async def interact(
        self, event_id: str | None = None, prompt: str = "#112233", **more: Any
    ) -> None:
        """Send an interaction."""
        body: Message = {"event": {"prompt": prompt}, **more}
        if event_id is not None:
            body["event_id"] = event_id
        await self.send("session.interaction", interaction=body)

    async def chunk(self) -> Message:
        """Return the metadata of the next payload, once that has come."""
        await self.until("video.chunk_metadata")
        assert isinstance(await self.next(), bytes)
        return self.seen.chunks[-1]

    async def finish(self) -> tuple[Seen, int]:
        """Read to the end of the connection; return all that was seen and the close code."""
        code, _, _ = await self.closed()
        self.seen.settled()
        return self.seen, code


@asynccontextmanager
async def watching(address: str, **options: Any) -> AsyncIterator[VideoClient]:
    """Connect to the edge at `host:port`."""
    defaults = {"max_size": None, "compression": None, "ping_interval": None, "close_timeout": 2}
    async with connect(f"ws://{address}/v1/realtime/video", **{**defaults, **options}) as socket:
        yield VideoClient(socket)
