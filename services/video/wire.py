"""Requests off the wire.

Owns: the one place where a message of a client becomes a validated request or control. Does not
own: what a particular model does (`services.video.planning`), the answers (`replies`). Enforces:
IO-INV-001 (the modality of a payload is stated), WEIR-148 (ranges), WEIR-201 (a violation names a
path and a rule, never a value), WEIR-301, and that every field is read or refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from google.protobuf import struct_pb2
from google.protobuf.message import Message
from weir.media.v1 import identity_pb2, modality_pb2, video_pb2
from weir.video.v1 import video_pb2 as service_pb2

from contracts.errors import Failure, FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.generation import (
    DEFAULT_LEAD_SECONDS,
    MAX_LEAD_SECONDS,
    OPTION_RANGES,
    Control,
    Credit,
    GenerationRequest,
    Interaction,
    Pause,
    Playback,
    Resume,
    Stop,
    check_prompt,
)
from contracts.video import (
    MAX_EVENT_ID_CHARACTERS,
    MAX_FRAMES,
    MAX_PROMPT_CHARACTERS,
    GenerationIdentity,
    Pace,
    VideoCodec,
)
from services.runtime.errors import refuse_unknown_fields
from services.video.structs import plain

CODECS = {
    video_pb2.VIDEO_CODEC_UNSPECIFIED: VideoCodec.H264,
    video_pb2.VIDEO_CODEC_H264: VideoCodec.H264,
    video_pb2.VIDEO_CODEC_VP9: VideoCodec.VP9,
    video_pb2.VIDEO_CODEC_AV1: VideoCodec.AV1,
}
PACES = {
    service_pb2.PACE_UNSPECIFIED: Pace.FREE,
    service_pb2.PACE_FREE: Pace.FREE,
    service_pb2.PACE_REALTIME: Pace.REALTIME,
}
MAX_TEXTS_BYTES = 512 * 1024
"""Greatest size of a message beside its picture: reading it holds the event loop."""

_ID_RULE = "Must be 1 to 128 characters of A-Z a-z 0-9 . _ -"
_PROMPT_RULE = f"Must be 1 to {MAX_PROMPT_CHARACTERS} characters and not blank."
_SECOND_CONFIG = failure(Reason.SESSION_STATE, "A config comes first and only once.")


class InteractionError(NamedTuple):
    """An interaction that is refused for its syntax; `event_id` is empty where it is the fault."""

    event_id: str
    failure: Failure


def read_config(message: service_pb2.StreamGenerateRequest) -> GenerationRequest:
    """Return what the first message of a call asks for.

    Raises WeirError: INVALID_MESSAGE naming every offending field; SESSION_STATE when it is no
    config.
    """
    _refuse_large(message, len(message.config.image_reference))
    refuse_unknown_fields(message)
    kind = message.WhichOneof("message")
    if kind is None:
        raise WeirError(_unset())
    if kind != "config":
        raise WeirError(_SECOND_CONFIG)
    config, findings = message.config, _Findings("config.")
    _check_identity(config, findings)
    _check_prompt(config, findings)
    _check_output(config, findings)
    _check_length(config, findings)
    _check_options(config, findings)
    extra = findings.struct(config.extra_params, "extra_params")
    findings.require(config.pace in PACES, "pace", "Must be a known pace.")
    findings.require(
        0 <= _lead(config) <= MAX_LEAD_SECONDS,
        "lead_seconds",
        f"Must be 0 to {MAX_LEAD_SECONDS:g}.",
    )
    findings.require(config.initial_credits >= 1, "initial_credits", "Must be at least 1.")
    findings.refuse_if_any()
    return _request(config, extra)


def read_control(message: service_pb2.StreamGenerateRequest) -> Control | InteractionError:
    """Return what a later message of a call asks for.

    Raises WeirError (INVALID_MESSAGE, SESSION_STATE for a second config), which ends the
    generation. An interaction that is wrong in itself is an InteractionError and ends nothing.
    """
    kind = message.WhichOneof("message")
    if kind == "interaction":
        return _interaction(message)
    _refuse_large(message, len(message.config.image_reference))
    refuse_unknown_fields(message)
    match kind:
        case "credit":
            _require(message.credit.chunks >= 1, "credit.chunks", "Must be at least 1.")
            return Credit(message.credit.chunks)
        case "pause":
            return Pause()
        case "resume":
            return Resume()
        case "playback":
            try:
                return Playback(message.playback.position_seconds)
            except ValueError:
                _require(False, "playback.position_seconds", "Must be finite and at least 0.")
                raise
        case "stop":
            return Stop()
        case "config":
            raise WeirError(_SECOND_CONFIG)
        case _:
            raise WeirError(_unset())


@dataclass(slots=True)
class _Findings:
    """Collects every offending field, so that one answer names all of them."""

    prefix: str
    violations: list[FieldViolation] = field(default_factory=list)

    def require(self, holds: bool, path: str, rule: str) -> None:
        """Note that the field at `path` breaks `rule` unless `holds`."""
        if not holds:
            self.violations.append(FieldViolation(f"{self.prefix}{path}", rule))

    def accepts(self, build: Callable[[], object], path: str, rule: str) -> None:
        """Note a violation when the contract's own record refuses the value that `build` gives."""
        try:
            build()
        except ValueError:
            self.require(False, path, rule)

    def struct(self, struct: struct_pb2.Struct, path: str) -> dict[str, object]:
        """Return the plain values of `struct`; note a violation when it has none."""
        try:
            return plain(struct)
        except ValueError:
            self.require(False, path, "Must hold values, and finite numbers only.")
            return {}

    def failure(self) -> Failure | None:
        """Return what everything noted so far amounts to; None when that is nothing."""
        if not self.violations:
            return None
        # WEIR-201: paths and rules are ours; the offending values stay out.
        fields = ", ".join(violation.field for violation in self.violations)
        return failure(
            Reason.INVALID_MESSAGE,
            f"The request is refused for: {fields}.",
            code=GrpcCode.INVALID_ARGUMENT,
            violations=tuple(self.violations),
        )

    def refuse_if_any(self) -> None:
        """Raise WeirError with everything noted so far."""
        found = self.failure()
        if found is not None:
            raise WeirError(found)


def _require(holds: bool, path: str, rule: str) -> None:
    findings = _Findings("")
    findings.require(holds, path, rule)
    findings.refuse_if_any()


def _refuse_large(message: Message, picture_bytes: int) -> None:
    _require(
        message.ByteSize() - picture_bytes <= MAX_TEXTS_BYTES,
        ".",
        f"Must have at most {MAX_TEXTS_BYTES} bytes beside a picture.",
    )


def _unset() -> Failure:
    rule = "Must be set to a message that this version of the service knows."
    return failure(
        Reason.INVALID_MESSAGE,
        "The request holds no message.",
        violations=(FieldViolation("message", rule),),
    )


def _check_identity(config: service_pb2.GenerationConfig, findings: _Findings) -> None:
    findings.require(config.HasField("identity"), "identity", "Is required.")
    if not config.HasField("identity"):
        return
    who = config.identity
    findings.accepts(
        lambda: GenerationIdentity(who.session_id, "r"), "identity.session_id", _ID_RULE
    )
    findings.accepts(
        lambda: GenerationIdentity("s", who.request_id), "identity.request_id", _ID_RULE
    )
    findings.require(who.attempt >= 1, "identity.attempt", "Must be at least 1.")


def _check_prompt(config: service_pb2.GenerationConfig, findings: _Findings) -> None:
    findings.require(config.HasField("prompt"), "prompt", "Is required.")
    if not config.HasField("prompt"):
        return
    # IO-INV-001: nothing is guessed from the field that is filled.
    findings.require(
        config.prompt.modality == modality_pb2.MODALITY_TEXT,
        "prompt.modality",
        "Must be MODALITY_TEXT.",
    )
    findings.accepts(lambda: check_prompt(config.prompt.text), "prompt.text", _PROMPT_RULE)
    spans = [span.text for span in config.prompt.spans]
    findings.require(
        not spans or (all(spans) and "".join(spans) == config.prompt.text),
        "prompt.spans",
        "Must concatenate to exactly the text.",
    )
    findings.require(
        len(config.negative_prompt) <= MAX_PROMPT_CHARACTERS,
        "negative_prompt",
        f"Must have at most {MAX_PROMPT_CHARACTERS} characters.",
    )


def _check_output(config: service_pb2.GenerationConfig, findings: _Findings) -> None:
    output = config.output
    findings.require(
        output.container == video_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4,
        "output.container",
        "Must be VIDEO_CONTAINER_FRAGMENTED_MP4.",
    )
    findings.require(output.codec in CODECS, "output.codec", "Must be a known codec.")
    findings.require(
        bool(output.width) == bool(output.height),
        "output.width",
        "Must be given together with the height.",
    )
    findings.require(
        not output.frame_rate_numerator or output.frame_rate_denominator >= 1,
        "output.frame_rate_denominator",
        "Must be at least 1.",
    )


def _check_length(config: service_pb2.GenerationConfig, findings: _Findings) -> None:
    if config.HasField("num_frames"):
        findings.require(not config.endless, "endless", "Must not come with num_frames.")
        findings.require(
            1 <= config.num_frames <= MAX_FRAMES, "num_frames", f"Must be 1 to {MAX_FRAMES}."
        )


def _check_options(config: service_pb2.GenerationConfig, findings: _Findings) -> None:
    for name, value in _options(config).items():
        low, high = OPTION_RANGES[name]
        findings.require(low <= value <= high, name, f"Must be {low:g} to {high:g}.")
    if config.HasField("flow_shift"):
        findings.require(config.flow_shift != 0, "flow_shift", "Must be greater than 0.")
    if config.HasField("image_reference"):
        findings.require(bool(config.image_reference), "image_reference", "Must not be empty.")


def _options(config: service_pb2.GenerationConfig) -> dict[str, int | float]:
    return {
        field.name: value for field, value in config.ListFields() if field.name in OPTION_RANGES
    }


def _lead(config: service_pb2.GenerationConfig) -> float:
    return config.lead_seconds if config.HasField("lead_seconds") else DEFAULT_LEAD_SECONDS


def _request(config: service_pb2.GenerationConfig, extra: dict[str, object]) -> GenerationRequest:
    output = config.output
    rate = (
        Fraction(output.frame_rate_numerator, output.frame_rate_denominator)
        if output.frame_rate_numerator
        else None
    )
    return GenerationRequest(
        identity=_identity(config.identity),
        prompt=config.prompt.text,
        initial_credits=config.initial_credits,
        negative_prompt=config.negative_prompt if config.HasField("negative_prompt") else None,
        width=output.width,
        height=output.height,
        frame_rate=rate,
        codec=CODECS[output.codec],
        num_frames=config.num_frames if config.HasField("num_frames") else None,
        endless=config.endless,
        options=_options(config),
        seed=config.seed if config.HasField("seed") else None,
        image=config.image_reference if config.HasField("image_reference") else None,
        extra_params=extra,
        pace=PACES[config.pace],
        lead_seconds=_lead(config),
    )


def _identity(who: identity_pb2.GenerationIdentity) -> GenerationIdentity:
    return GenerationIdentity(who.session_id, who.request_id, who.attempt)


def _interaction(
    message: service_pb2.StreamGenerateRequest,
) -> Interaction | InteractionError:
    asked, findings = message.interaction, _Findings("interaction.")
    named = 1 <= len(asked.event_id) <= MAX_EVENT_ID_CHARACTERS
    # What is refused here is correlated by its id, unless that is what is wrong with it.
    event_id = asked.event_id if named else ""
    try:
        _refuse_large(message, 0)
        refuse_unknown_fields(message)
    except WeirError as error:
        return InteractionError(event_id, error.failure)
    findings.require(named, "event_id", f"Must be 1 to {MAX_EVENT_ID_CHARACTERS} characters.")
    findings.accepts(lambda: check_prompt(asked.prompt), "prompt", _PROMPT_RULE)
    fields = findings.struct(asked.event_fields, "event_fields")
    found = findings.failure()
    if found is not None:
        return InteractionError(event_id, found)
    chunks = asked.transition_chunks if asked.HasField("transition_chunks") else None
    return Interaction(asked.event_id, asked.prompt, chunks, fields)
