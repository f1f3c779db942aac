"""Backend updates as messages of the video endpoint.

Owns: the form of each message. Does not own: when one is sent (`core`), the order of updates (the
backend has checked it). Enforces: IO-INV-300 (updates are translated into public messages),
IO-INV-100 (every message after the start carries the request id), WEIR-168 (a payload and the
metadata that describe it leave as one action).
"""

from __future__ import annotations

from contracts.generation import Accepted, Chunk
from services.edge.video.events import SendChunk, SendMessage
from services.edge.video.messages import ChunkMetadata, SessionDone, VideoStart
from services.edge.video.negotiation import Agreement
from services.edge.video.publication import config_in_force, public_capabilities, public_limits
from services.edge.video.terms import VideoTerms


def start_message(agreement: Agreement, accepted: Accepted, terms: VideoTerms) -> SendMessage:
    """Return the message that opens the video."""
    return SendMessage(
        VideoStart(
            request_id=terms.request_id,
            format="m4s",
            config=config_in_force(agreement.request, accepted, agreement.capabilities),
            codec=accepted.codec.value,
            mime_type=accepted.mime_type,
            capabilities=public_capabilities(agreement.capabilities),
            limits=public_limits(terms.limits),
            warnings=agreement.warnings,
        )
    )


def chunk_message(chunk: Chunk, request_id: str) -> SendChunk:
    """Return a payload with its metadata."""
    # WEIR-168: one action, so nothing can come between the two.
    return SendChunk(
        ChunkMetadata(
            request_id=request_id,
            kind="trailer" if chunk.generation_chunk_index is None else "media",
            transport_chunk_index=chunk.transport_chunk_index,
            generation_chunk_index=chunk.generation_chunk_index,
            num_frames=chunk.num_frames,
            byte_length=len(chunk.data),
            started_event_ids=chunk.started,
            active_event_ids=chunk.active,
            completed_event_ids=chunk.completed,
            superseded_event_ids=chunk.superseded,
            prompt_progress=chunk.prompt_progress,
            pts_seconds=chunk.pts_seconds,
        ),
        chunk.data,
    )


def done_message(
    request_id: str,
    *,
    chunks: int,
    stopped: bool,
    superseded: tuple[str, ...],
    unfinished: tuple[str, ...],
) -> SendMessage:
    """Return the message that ends a video."""
    return SendMessage(SessionDone(request_id, chunks, stopped, superseded, unfinished))
