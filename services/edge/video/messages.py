"""The WebSocket messages of the video endpoint, as records.

Owns: names, types, ranges and defaults of every field; the JSON Schemas are generated from here.
Does not own: parsing and its errors (`services.edge.frames`), what a message does (`core`), how the
fields of a start fit together (`negotiation`), the parts of an interaction (`interactions`).
Enforces: IO-INV-300 (this JSON is a contract of its own), IO-INV-101 (chunks, `session.done` and
`error` are messages of their own).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from contracts.generation import MAX_LEAD_SECONDS
from contracts.speech import INT64_MAX, INT64_MIN
from contracts.video import MAX_EVENT_ID_CHARACTERS, MAX_PROMPT_CHARACTERS

MAX_TRANSITION_CHUNKS = 2**32 - 1
"""Greatest count that the wire to the service can hold."""

MAX_FRAME_RATE = 240
"""Greatest frame rate that an operator can allow, in frames per second."""

CodecName = Literal["h264", "vp9", "av1"]
PaceName = Literal["free", "realtime"]

Pixels = Annotated[int, Meta(ge=1, le=16384)]
FrameRate = Annotated[int, Meta(ge=1, le=MAX_FRAME_RATE)]
FrameCount = Annotated[int, Meta(ge=1)]
Steps = Annotated[int, Meta(ge=1, le=200)]
Guidance = Annotated[float, Meta(ge=0, le=20)]
Share = Annotated[float, Meta(ge=0, le=1)]
Shift = Annotated[float, Meta(gt=0, le=1000)]
Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Size = Annotated[str, Meta(pattern=r"^[0-9]{1,5}[xX][0-9]{1,5}$")]
Seconds = Annotated[str, Meta(pattern=r"^[0-9]{1,5}$")]
LeadSeconds = Annotated[float, Meta(ge=0, le=MAX_LEAD_SECONDS)]
Position = Annotated[float, Meta(ge=0)]
Prompt = Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT_CHARACTERS)]
EventId = Annotated[str, Meta(min_length=1, max_length=MAX_EVENT_ID_CHARACTERS)]
TransitionChunks = Annotated[int, Meta(ge=0, le=MAX_TRANSITION_CHUNKS)]


class ImageReference(Struct, frozen=True, forbid_unknown_fields=True):
    """The first frame: a `data:` URL of a PNG, JPEG or WebP picture; nothing is ever fetched.

    Any other key would name a picture that is then missing, so it is refused.
    """

    image_url: str


class SamplingParams(Struct, frozen=True):
    """Further places for the same options; the fields of the message itself win over them."""

    width: Pixels | None = None
    height: Pixels | None = None
    fps: FrameRate | None = None
    num_frames: FrameCount | None = None
    negative_prompt: str | None = None
    num_inference_steps: Steps | None = None
    guidance_scale: Guidance | None = None
    guidance_scale_2: Guidance | None = None
    true_cfg_scale: Guidance | None = None
    boundary_ratio: Share | None = None
    flow_shift: Shift | None = None
    seed: Int64 | None = None


class SessionStart(Struct, frozen=True, tag_field="type", tag="session.start"):
    """Starts the one generation of the connection; must be the first message.

    `null` in any field means its default. `width`, `height` and `num_frames` win over `size` and
    `seconds`, these over `sampling_params`.
    """

    prompt: str
    model: str | None = None
    format: Literal["m4s"] | None = None
    width: Pixels | None = None
    height: Pixels | None = None
    fps: FrameRate | None = None
    num_frames: FrameCount | None = None
    size: Size | None = None
    seconds: Seconds | Annotated[int, Meta(ge=1, le=99_999)] | None = None
    negative_prompt: str | None = None
    num_inference_steps: Steps | None = None
    guidance_scale: Guidance | None = None
    guidance_scale_2: Guidance | None = None
    true_cfg_scale: Guidance | None = None
    boundary_ratio: Share | None = None
    flow_shift: Shift | None = None
    seed: Int64 | None = None
    image_reference: ImageReference | None = None
    extra_params: dict[str, Any] | None = None
    sampling_params: SamplingParams | None = None
    codec: CodecName | None = None
    pace: PaceName | None = None
    lead_seconds: LeadSeconds | None = None
    endless: bool | None = None


class InteractionEvent(Struct, frozen=True):
    """The target; further fields are passed on, and fail where the model does not read them."""

    prompt: Prompt


# Its form in the schema alone: `interactions` reads the body, so that an error can be correlated.
class InteractionBody(Struct, frozen=True):
    """What an interaction asks for; `transition_chunks` takes integral floats as well."""

    event: InteractionEvent
    event_id: EventId | None = None
    transition_chunks: TransitionChunks | None = None


class SessionInteraction(Struct, frozen=True, tag_field="type", tag="session.interaction"):
    """Asks for a new prompt while the generation runs."""

    interaction: dict[str, Any]


class SessionStop(Struct, frozen=True, tag_field="type", tag="session.stop"):
    """Finishes the chunk in progress, then ends the generation."""


class SessionPing(Struct, frozen=True, tag_field="type", tag="session.ping"):
    """Answered by `session.pong`."""


class SessionPlayback(Struct, frozen=True, tag_field="type", tag="session.playback"):
    """Says how far the viewer has come, in seconds of the video."""

    position_seconds: Position


class SessionPause(Struct, frozen=True, tag_field="type", tag="session.pause"):
    """Stands still at the next boundary."""


class SessionResume(Struct, frozen=True, tag_field="type", tag="session.resume"):
    """Goes on."""


ClientMessage = (
    SessionStart
    | SessionInteraction
    | SessionStop
    | SessionPing
    | SessionPlayback
    | SessionPause
    | SessionResume
)
CLIENT_MESSAGES: tuple[type[Struct], ...] = (
    SessionStart,
    SessionInteraction,
    SessionStop,
    SessionPing,
    SessionPlayback,
    SessionPause,
    SessionResume,
)


class VideoStart(Struct, frozen=True, tag_field="type", tag="video.start"):
    """The generation is admitted; `config` is what is in force."""

    request_id: str
    format: Literal["m4s"]
    config: dict[str, Any]
    codec: CodecName
    mime_type: str
    capabilities: dict[str, Any]
    limits: dict[str, Any]
    warnings: tuple[str, ...]


class InteractionQueuedMessage(
    Struct, frozen=True, tag_field="type", tag="session.interaction.queued"
):
    """An interaction is recorded and queued."""

    request_id: str
    event_id: str


class ChunkMetadata(Struct, frozen=True, tag_field="type", tag="video.chunk_metadata"):
    """Stands right before the binary payload it describes."""

    request_id: str
    kind: Literal["media", "trailer"]
    transport_chunk_index: int
    generation_chunk_index: int | None
    num_frames: int
    byte_length: int
    started_event_ids: tuple[str, ...]
    active_event_ids: tuple[str, ...]
    completed_event_ids: tuple[str, ...]
    superseded_event_ids: tuple[str, ...]
    prompt_progress: float | None
    pts_seconds: float | None


class SessionPong(Struct, frozen=True, tag_field="type", tag="session.pong"):
    """Answers `session.ping`."""

    request_id: str | UnsetType = UNSET


class SessionPaused(Struct, frozen=True, tag_field="type", tag="session.paused"):
    """Generation stands still."""

    request_id: str


class SessionResumed(Struct, frozen=True, tag_field="type", tag="session.resumed"):
    """Generation goes on."""

    request_id: str


class SessionDone(Struct, frozen=True, tag_field="type", tag="session.done"):
    """The generation completed or was stopped; `chunks` counts payloads, the trailer included."""

    request_id: str
    chunks: int
    stopped: bool
    superseded_event_ids: tuple[str, ...]
    unfinished_event_ids: tuple[str, ...]


class ErrorMessage(Struct, frozen=True, tag_field="type", tag="error"):
    """Something went wrong. The two lists stand in the error that ends a generation."""

    message: str
    code: str
    request_id: str | UnsetType = UNSET
    event_id: str | UnsetType = UNSET
    retry_after_ms: int | UnsetType = UNSET
    superseded_event_ids: tuple[str, ...] | UnsetType = UNSET
    unfinished_event_ids: tuple[str, ...] | UnsetType = UNSET


ServerMessage = (
    VideoStart
    | InteractionQueuedMessage
    | ChunkMetadata
    | SessionPong
    | SessionPaused
    | SessionResumed
    | SessionDone
    | ErrorMessage
)
SERVER_MESSAGES: tuple[type[Struct], ...] = (
    VideoStart,
    InteractionQueuedMessage,
    ChunkMetadata,
    SessionPong,
    SessionPaused,
    SessionResumed,
    SessionDone,
    ErrorMessage,
)
