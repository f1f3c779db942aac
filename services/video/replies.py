"""Answers onto the wire.

Owns: turning the updates of a generation and capabilities into messages of `weir.video.v1`. Does
not own: the order of updates (`services.video.run`), requests (`services.video.wire`). Enforces:
IO-INV-001 (every payload states its modality), IO-INV-100 (every answer repeats the identity it
answers), IO-INV-101 (partial and terminal updates are different messages).
"""

from __future__ import annotations

from typing import assert_never

from weir.media.v1 import identity_pb2, modality_pb2, video_pb2
from weir.video.v1 import video_pb2 as service_pb2

from contracts.errors import Failure
from contracts.generation import (
    Accepted,
    Chunk,
    GenerationUpdate,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
    Outcome,
    Paused,
    Progress,
    Resumed,
    VideoCompleted,
    Waiting,
    WaitReason,
)
from contracts.status import failure_to_wire
from contracts.video import GenerationIdentity, VideoCapabilities, VideoCodec

_CODEC_NUMBERS = {
    VideoCodec.H264: video_pb2.VIDEO_CODEC_H264,
    VideoCodec.VP9: video_pb2.VIDEO_CODEC_VP9,
    VideoCodec.AV1: video_pb2.VIDEO_CODEC_AV1,
}
_WAIT_NUMBERS = {
    WaitReason.PAUSE: service_pb2.WAIT_REASON_PAUSE,
    WaitReason.PLAYBACK: service_pb2.WAIT_REASON_PLAYBACK,
    WaitReason.CREDIT: service_pb2.WAIT_REASON_CREDIT,
}


def reply(
    identity: GenerationIdentity, update: GenerationUpdate
) -> service_pb2.StreamGenerateResponse:
    """Return `update` as a message about the generation with `identity`."""
    message = service_pb2.StreamGenerateResponse(
        identity=identity_pb2.GenerationIdentity(  # IO-INV-100
            session_id=identity.session_id,
            request_id=identity.request_id,
            attempt=identity.attempt,
        )
    )
    match update:
        case Accepted():
            message.accepted.CopyFrom(_accepted(update))
        case Chunk():
            message.chunk.CopyFrom(_chunk(update))
        case InteractionQueued():
            message.interaction_queued.event_id = update.event_id
        case InteractionFailed():
            message.interaction_failed.event_id = update.event_id
            message.interaction_failed.failure.CopyFrom(failure_to_wire(update.failure))
        case InteractionRefused():
            message.interaction_refused.event_id = update.event_id
            message.interaction_refused.failure.CopyFrom(failure_to_wire(update.failure))
        case Paused():
            message.paused.SetInParent()
        case Resumed():
            message.resumed.SetInParent()
        case Progress():
            message.progress.generation_chunk_index = update.generation_chunk_index
            message.progress.steps = update.steps
        case Waiting():
            message.waiting.reason = _WAIT_NUMBERS[update.reason]
        case VideoCompleted():
            message.video_completed.CopyFrom(_completed(update))
        case Outcome():
            message.outcome.CopyFrom(_outcome(update))
        case _:
            assert_never(update)
    return message


def capabilities_reply(record: VideoCapabilities) -> service_pb2.GetCapabilitiesResponse:
    """Return the declared record as the answer to GetCapabilities."""
    return service_pb2.GetCapabilitiesResponse(
        capabilities=service_pb2.VideoCapabilities(
            model=record.model,
            frames_per_second=record.frames_per_second,
            default_num_frames=record.default_num_frames,
            max_num_frames=record.max_num_frames or 0,
            first_chunk_frames=record.first_chunk_frames,
            chunk_frames=record.chunk_frames,
            size_multiple=record.size_multiple,
            default_width=record.default_width,
            default_height=record.default_height,
            prompt_updates=record.prompt_updates,
            default_transition_chunks=record.default_transition_chunks,
            image_reference=record.image_reference,
            options=sorted(record.options),
            extra_params=sorted(record.extra_params),
            event_fields=sorted(record.event_fields),
            codecs=[_CODEC_NUMBERS[codec] for codec in record.codecs],
        )
    )


def _accepted(update: Accepted) -> service_pb2.GenerationAccepted:
    return service_pb2.GenerationAccepted(
        format=video_pb2.VideoFormat(
            container=video_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4,
            width=update.width,
            height=update.height,
            frame_rate_numerator=update.frame_rate.numerator,
            frame_rate_denominator=update.frame_rate.denominator,
            codec=_CODEC_NUMBERS[update.codec],
        ),
        mime_type=update.mime_type,
        first_chunk_frames=update.first_chunk_frames,
        chunk_frames=update.chunk_frames,
        num_frames=update.num_frames,
        default_transition_chunks=update.default_transition_chunks,
        seed=update.seed,
    )


def _chunk(update: Chunk) -> service_pb2.GenerationChunk:
    return service_pb2.GenerationChunk(
        video=video_pb2.VideoChunk(
            modality=modality_pb2.MODALITY_VIDEO,
            transport_chunk_index=update.transport_chunk_index,
            generation_chunk_index=update.generation_chunk_index,
            num_frames=update.num_frames,
            data=update.data,
        ),
        started_event_ids=update.started,
        active_event_ids=update.active,
        completed_event_ids=update.completed,
        superseded_event_ids=update.superseded,
        prompt_progress=update.prompt_progress,
        pts_seconds=update.pts_seconds,
    )


def _completed(update: VideoCompleted) -> video_pb2.VideoCompleted:
    return video_pb2.VideoCompleted(
        modality=modality_pb2.MODALITY_VIDEO,
        transport_chunk_count=update.transport_chunk_count,
        generation_chunk_count=update.generation_chunk_count,
        total_frames=update.total_frames,
        total_bytes=update.total_bytes,
    )


def _outcome(update: Outcome) -> service_pb2.GenerationOutcome:
    failed: Failure | None = update.failure
    return service_pb2.GenerationOutcome(
        failure=None if failed is None else failure_to_wire(failed),
        stopped=update.stopped,
        transport_chunk_count=update.transport_chunk_count,
        superseded_event_ids=update.superseded,
        unfinished_event_ids=update.unfinished,
    )
