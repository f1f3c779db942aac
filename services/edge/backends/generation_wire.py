"""Domain values to the messages of `weir.video.v1`, and back.

Owns: how the edge writes a generation request and controls, and reads responses and capabilities.
Does not own: the order of responses (`generation_stream`), what the values mean (`contracts`).
Enforces: IO-INV-001 (a payload names its modality, and it is the right one), IO-INV-100 (a response
carries the identity it answers), WEIR-302 (what a newer service adds to a response is ignored).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, cast

from google.protobuf.struct_pb2 import Struct
from weir.media.v1 import identity_pb2, modality_pb2, text_pb2, video_pb2
from weir.video.v1 import video_pb2 as rpc_pb2

from contracts.errors import WeirError
from contracts.generation import (
    OPTION_RANGES,
    Accepted,
    Chunk,
    Control,
    Credit,
    GenerationRequest,
    GenerationUpdate,
    Interaction,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
    Outcome,
    Pause,
    Paused,
    Playback,
    Progress,
    Resume,
    Resumed,
    Stop,
    VideoCompleted,
    Waiting,
    WaitReason,
)
from contracts.status import failure_from_wire
from contracts.video import VIDEO_OPTIONS, GenerationIdentity, Pace, VideoCapabilities, VideoCodec
from services.edge.backends.wire import WireError

_CODECS = {
    VideoCodec.H264: video_pb2.VIDEO_CODEC_H264,
    VideoCodec.VP9: video_pb2.VIDEO_CODEC_VP9,
    VideoCodec.AV1: video_pb2.VIDEO_CODEC_AV1,
}
_CODEC_OF = {wire: codec for codec, wire in _CODECS.items()}
_PACES = {Pace.FREE: rpc_pb2.PACE_FREE, Pace.REALTIME: rpc_pb2.PACE_REALTIME}
_WAIT_REASONS = {
    rpc_pb2.WAIT_REASON_PAUSE: WaitReason.PAUSE,
    rpc_pb2.WAIT_REASON_PLAYBACK: WaitReason.PLAYBACK,
    rpc_pb2.WAIT_REASON_CREDIT: WaitReason.CREDIT,
}


def config_message(request: GenerationRequest) -> rpc_pb2.StreamGenerateRequest:
    """Write the first message of a call."""
    rate = request.frame_rate or Fraction(0)
    config = rpc_pb2.GenerationConfig(
        identity=_identity(request.identity),
        prompt=text_pb2.TextPayload(
            modality=modality_pb2.MODALITY_TEXT,  # IO-INV-001: the payload says what it is
            text=request.prompt,
        ),
        negative_prompt=request.negative_prompt,
        output=video_pb2.VideoFormat(
            container=video_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4,
            width=request.width,
            height=request.height,
            frame_rate_numerator=rate.numerator,
            frame_rate_denominator=rate.denominator if rate else 0,
            codec=_CODECS[request.codec],
        ),
        num_frames=request.num_frames,
        endless=request.endless,
        seed=request.seed,
        image_reference=request.image,
        pace=_PACES[request.pace],
        lead_seconds=request.lead_seconds,
        initial_credits=request.initial_credits,
    )
    for name in OPTION_RANGES:
        if name in request.options:
            setattr(config, name, request.options[name])
    if request.extra_params:
        config.extra_params.CopyFrom(_struct(request.extra_params))
    return rpc_pb2.StreamGenerateRequest(config=config)


def control_message(control: Control) -> rpc_pb2.StreamGenerateRequest:
    """Write one message of a call that has been accepted."""
    match control:
        case Interaction():
            return rpc_pb2.StreamGenerateRequest(interaction=_interaction(control))
        case Credit():
            return rpc_pb2.StreamGenerateRequest(credit=rpc_pb2.Credit(chunks=control.chunks))
        case Pause():
            return rpc_pb2.StreamGenerateRequest(pause=rpc_pb2.Pause())
        case Resume():
            return rpc_pb2.StreamGenerateRequest(resume=rpc_pb2.Resume())
        case Playback():
            playback = rpc_pb2.Playback(position_seconds=control.position_seconds)
            return rpc_pb2.StreamGenerateRequest(playback=playback)
        case Stop():
            return rpc_pb2.StreamGenerateRequest(stop=rpc_pb2.Stop())


def _interaction(control: Interaction) -> rpc_pb2.Interaction:
    message = rpc_pb2.Interaction(
        event_id=control.event_id,
        prompt=control.prompt,
        transition_chunks=control.transition_chunks,  # None leaves it absent
    )
    if control.event_fields:
        message.event_fields.CopyFrom(_struct(control.event_fields))
    return message


def _struct(fields: Mapping[str, object]) -> Struct:
    message = Struct()
    message.update(cast("dict[str, Any]", fields))  # the session has checked the values
    return message


def _identity(identity: GenerationIdentity) -> identity_pb2.GenerationIdentity:
    return identity_pb2.GenerationIdentity(
        session_id=identity.session_id,
        request_id=identity.request_id,
        attempt=identity.attempt,
    )


class GenerationReader:
    """Reads the responses to one request."""

    __slots__ = ("_identity_message",)

    def __init__(self, identity: GenerationIdentity) -> None:
        self._identity_message = _identity(identity)

    def read(self, response: rpc_pb2.StreamGenerateResponse) -> GenerationUpdate | None:
        """Read one response; None for an update that this edge does not know.

        Raises WireError for another identity, a wrong modality or a value out of range.
        """
        kind = response.WhichOneof("message")
        if kind is None:
            return None  # WEIR-302: a newer service may tell more; what is needed is checked above
        # IO-INV-100: an answer to somebody else must not reach this client.
        if response.identity != self._identity_message:
            raise WireError(f"{kind}: the identity is not the one that was asked for")
        try:
            return _UPDATES[kind](response)
        except WireError:
            raise
        except (ValueError, WeirError) as refused:  # the domain types check their own ranges
            raise WireError(f"{kind}: {refused}") from refused


def _expect_video(modality: int) -> None:
    # IO-INV-001: nothing is taken for video that does not say so.
    if modality != modality_pb2.MODALITY_VIDEO:
        raise WireError("the payload has another modality than its message")


def _accepted(response: rpc_pb2.StreamGenerateResponse) -> Accepted:
    accepted = response.accepted
    codec = _CODEC_OF.get(accepted.format.codec)
    if codec is None or accepted.format.container != video_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4:
        raise WireError("accepted: the format is not known")
    if not accepted.format.frame_rate_numerator or not accepted.format.frame_rate_denominator:
        raise WireError("accepted: there is no frame rate")
    return Accepted(
        width=accepted.format.width,
        height=accepted.format.height,
        frame_rate=Fraction(
            accepted.format.frame_rate_numerator, accepted.format.frame_rate_denominator
        ),
        codec=codec,
        mime_type=accepted.mime_type,
        first_chunk_frames=accepted.first_chunk_frames,
        chunk_frames=accepted.chunk_frames,
        num_frames=accepted.num_frames if accepted.HasField("num_frames") else None,
        default_transition_chunks=accepted.default_transition_chunks,
        seed=accepted.seed,
    )


def _chunk(response: rpc_pb2.StreamGenerateResponse) -> Chunk:
    chunk = response.chunk
    video = chunk.video
    _expect_video(video.modality)
    media = video.HasField("generation_chunk_index")
    return Chunk(
        transport_chunk_index=video.transport_chunk_index,
        generation_chunk_index=video.generation_chunk_index if media else None,
        num_frames=video.num_frames,
        data=video.data,
        started=tuple(chunk.started_event_ids),
        active=tuple(chunk.active_event_ids),
        completed=tuple(chunk.completed_event_ids),
        superseded=tuple(chunk.superseded_event_ids),
        prompt_progress=chunk.prompt_progress if chunk.HasField("prompt_progress") else None,
        pts_seconds=chunk.pts_seconds if chunk.HasField("pts_seconds") else None,
    )


def _queued(response: rpc_pb2.StreamGenerateResponse) -> InteractionQueued:
    return InteractionQueued(response.interaction_queued.event_id)


def _failed(response: rpc_pb2.StreamGenerateResponse) -> InteractionFailed:
    failed = response.interaction_failed
    return InteractionFailed(failed.event_id, failure_from_wire(failed.failure))


def _refused(response: rpc_pb2.StreamGenerateResponse) -> InteractionRefused:
    refused = response.interaction_refused
    return InteractionRefused(refused.event_id, failure_from_wire(refused.failure))


def _progress(response: rpc_pb2.StreamGenerateResponse) -> Progress:
    return Progress(response.progress.generation_chunk_index, response.progress.steps)


def _waiting(response: rpc_pb2.StreamGenerateResponse) -> GenerationUpdate:
    reason = _WAIT_REASONS.get(response.waiting.reason)
    if reason is None:
        # WEIR-302: a newer service may wait for something else; it is alive, and not stalled.
        return Progress(0, 0)
    return Waiting(reason)


def _completed(response: rpc_pb2.StreamGenerateResponse) -> VideoCompleted:
    completed = response.video_completed
    _expect_video(completed.modality)
    return VideoCompleted(
        completed.transport_chunk_count,
        completed.generation_chunk_count,
        completed.total_frames,
        completed.total_bytes,
    )


def _outcome(response: rpc_pb2.StreamGenerateResponse) -> Outcome:
    outcome = response.outcome
    return Outcome(
        failure_from_wire(outcome.failure) if outcome.HasField("failure") else None,
        outcome.stopped,
        outcome.transport_chunk_count,
        tuple(outcome.superseded_event_ids),
        tuple(outcome.unfinished_event_ids),
    )


_UPDATES: dict[str, Callable[[rpc_pb2.StreamGenerateResponse], GenerationUpdate]] = {
    "accepted": _accepted,
    "chunk": _chunk,
    "interaction_queued": _queued,
    "interaction_failed": _failed,
    "interaction_refused": _refused,
    "paused": lambda _: Paused(),
    "resumed": lambda _: Resumed(),
    "progress": _progress,
    "waiting": _waiting,
    "video_completed": _completed,
    "outcome": _outcome,
}


def capabilities(response: rpc_pb2.GetCapabilitiesResponse) -> VideoCapabilities:
    """Read what a replica declares, leaving out what this edge has no name for (WEIR-302).

    Raises WireError for a record that contradicts itself (WEIR-148).
    """
    declared = response.capabilities
    try:
        return VideoCapabilities(
            model=declared.model,
            frames_per_second=declared.frames_per_second,
            default_num_frames=declared.default_num_frames,
            first_chunk_frames=declared.first_chunk_frames,
            chunk_frames=declared.chunk_frames,
            size_multiple=declared.size_multiple,
            default_width=declared.default_width,
            default_height=declared.default_height,
            max_num_frames=declared.max_num_frames or None,
            prompt_updates=declared.prompt_updates,
            default_transition_chunks=declared.default_transition_chunks,
            image_reference=declared.image_reference,
            # WEIR-302: an option or a codec of a newer service cannot be asked for by this edge.
            options=frozenset(declared.options).intersection(VIDEO_OPTIONS),
            extra_params=frozenset(declared.extra_params),
            event_fields=frozenset(declared.event_fields),
            codecs=tuple(_CODEC_OF[codec] for codec in declared.codecs if codec in _CODEC_OF),
        )
    except (ValueError, ZeroDivisionError) as refused:
        raise WireError(f"capabilities: {refused}") from refused
