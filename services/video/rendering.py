"""Chunks of a model into payloads, on the encoding thread.

Owns: the frames of each chunk (their count, trimmed at the end), and the numbers of what was made.
Does not own: coding (`services.video.media`), when a chunk is rendered, sending. Enforces: WEIR-224
(exactly the wanted frames), WEIR-232 (a chunk that a model or an encoder gets wrong is a failure,
never a payload).
"""

from __future__ import annotations

from typing import Any

from contracts.generation import Chunk, VideoCompleted
from services.video.adapters.base import VideoAdapter
from services.video.gate import ChunkPlace
from services.video.media.encoder import ChunkEncoder
from services.video.timeline import Boundary


class RenderingError(Exception):
    """A chunk that cannot be sent; the text is ours."""


class Rendering:
    """The payloads of one generation, in order. One thread at a time."""

    def __init__(
        self, adapter: VideoAdapter[Any, Any, Any], encoder: ChunkEncoder, max_payload_bytes: int
    ) -> None:
        self._adapter = adapter
        self._encoder = encoder
        self._max_payload_bytes = max_payload_bytes
        self.payloads = 0
        """Payloads made, the trailer included."""
        self._chunks = 0
        self._frames = 0
        self._bytes = 0

    def chunk(
        self, place: ChunkPlace, boundary: Boundary[Any], state: object, latents: object
    ) -> Chunk:
        """Return the payload of one chunk. Raises what decoding and encoding raise."""
        frames = self._adapter.decode(state, latents)
        if len(frames) < place.num_frames:
            raise RenderingError(f"{len(frames)} frames were decoded of {place.num_frames}")
        # WEIR-224: the last chunk is cut to what was asked for.
        encoded = self._encoder.encode(frames[: place.num_frames])
        self._check(encoded.data)
        index = self._count(encoded.data)
        self._chunks += 1
        self._frames += place.num_frames
        return Chunk(
            transport_chunk_index=index,
            generation_chunk_index=place.index,
            num_frames=place.num_frames,
            data=encoded.data,
            started=boundary.started,
            active=boundary.active,
            completed=boundary.completed,
            superseded=boundary.superseded,
            prompt_progress=boundary.progress,
            pts_seconds=encoded.pts_seconds,
        )

    def trailer(self) -> Chunk:
        """Return the last payload, which shows nothing, yet is a whole video if alone."""
        data = self._encoder.trailer()
        self._check(data)
        return Chunk(self._count(data), None, 0, data)

    def completed(self) -> VideoCompleted:
        """Return the counts of everything so far."""
        return VideoCompleted(self.payloads, self._chunks, self._frames, self._bytes)

    def close(self) -> None:
        """Free the encoder. Any number of times."""
        self._encoder.close()

    def _check(self, data: bytes) -> None:
        # WEIR-232
        if not data:
            raise RenderingError("the encoder gave no bytes")
        if len(data) > self._max_payload_bytes:
            raise RenderingError(f"a payload of {len(data)} bytes is more than a message holds")

    def _count(self, data: bytes) -> int:
        index = self.payloads
        self.payloads += 1
        self._bytes += len(data)
        return index
