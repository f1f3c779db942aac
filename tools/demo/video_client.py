"""A WebSocket client of the video endpoint that takes down what every chunk said.

Owns: one generation with prompt changes on the way, as a record; the pairing of each metadata
message with its binary. Does not own: prompts and checks (`video`), pictures (`contact_sheet`).
Uses nothing but the public protocol.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tools.demo.client import DemonstrationError, Message, read_message, send

CLIP_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class PromptChange:
    """A prompt to send once the chunk that holds the frame at `after` (0 to 1) has arrived.

    `after` is a share of the clip; `transition_chunks` as the protocol has it.
    """

    event_id: str
    prompt: str
    after: float
    transition_chunks: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One media payload with its metadata message; `arrived_ms` since session.start was sent."""

    metadata: Message
    payload: bytes
    arrived_ms: float

    @property
    def num_frames(self) -> int:
        """Frames that the payload says it holds."""
        return int(self.metadata["num_frames"])

    def ids(self, kind: str) -> list[str]:
        """Return the ids of one list: started, active, completed or superseded."""
        found: list[str] = self.metadata[f"{kind}_event_ids"]
        return found


@dataclass(slots=True)
class Clip:
    """One video as it was received. `start` is the message video.start."""

    start: Message = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    trailer: bytes = b""
    queued: list[str] = field(default_factory=list)
    done: Message = field(default_factory=dict)

    @property
    def num_frames(self) -> int:
        """Frames of all chunks."""
        return sum(chunk.num_frames for chunk in self.chunks)

    @property
    def file(self) -> bytes:
        """The payloads in order: one MP4 file."""
        return b"".join([*(chunk.payload for chunk in self.chunks), self.trailer])


async def watch(url: str, start: Message, changes: Sequence[PromptChange]) -> Clip:
    """Hold one session and take it down. Raises DemonstrationError and what the connection does.

    `start` are the fields of session.start.
    """
    async with asyncio.timeout(CLIP_TIMEOUT_S), connect(url, max_size=None) as socket:
        begun = time.perf_counter()
        await send(socket, "session.start", **start)
        clip, waiting = Clip(), list(changes)
        while not clip.done:
            received = await socket.recv()
            if isinstance(received, bytes):
                raise DemonstrationError("binary without a metadata message in front of it")
            message = read_message(received)
            match message["type"]:
                case "video.start":
                    clip.start = message
                case "session.interaction.queued":
                    clip.queued.append(message["event_id"])
                case "video.chunk_metadata":
                    payload = await _payload(socket, message)
                    arrived_ms = (time.perf_counter() - begun) * 1000
                    _take(clip, message, payload, arrived_ms)
                    while waiting and _is_due(waiting[0], clip):
                        await _change(socket, waiting.pop(0))
                case "session.done":
                    clip.done = message
    return clip


async def _payload(socket: ClientConnection, metadata: Message) -> bytes:
    received = await socket.recv()
    if not isinstance(received, bytes):
        raise DemonstrationError("a message stands between metadata and binary")
    if len(received) != metadata["byte_length"]:
        raise DemonstrationError(f"{len(received)} bytes, not {metadata['byte_length']}")
    return received


def _take(clip: Clip, metadata: Message, payload: bytes, arrived_ms: float) -> None:
    if metadata["transport_chunk_index"] != len(clip.chunks) or clip.trailer:
        raise DemonstrationError(f"chunk out of order: {metadata['transport_chunk_index']}")
    if metadata["kind"] == "trailer":
        clip.trailer = payload
    else:
        clip.chunks.append(Chunk(metadata, payload, arrived_ms))


def _is_due(change: PromptChange, clip: Clip) -> bool:
    total: int = clip.start["config"]["num_frames"]
    return clip.num_frames >= change.after * total


async def _change(socket: ClientConnection, change: PromptChange) -> None:
    interaction: dict[str, Any] = {
        "event_id": change.event_id,
        "event": {"prompt": change.prompt},
        "transition_chunks": change.transition_chunks,
    }
    await send(socket, "session.interaction", interaction=interaction)
