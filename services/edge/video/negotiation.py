"""A start message held against what the deployment can do.

Owns: the rules between fields, what is an error and what a warning. Does not own: parsing
(`codec`), size and length (`sizing`), capabilities (`contracts.video`), the session's state
(`core`). Enforces: WEIR-157 (what is not declared never reaches the service: it is ignored with a
warning, or refused when the operator is strict or the result would be another video than asked
for), WEIR-141 (nothing the client asked for is dropped without a word).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from contracts.errors import Failure, Reason, WeirError, failure
from contracts.generation import DEFAULT_LEAD_SECONDS, OPTION_RANGES, GenerationRequest
from contracts.video import GenerationIdentity, Pace, VideoCapabilities, VideoCodec
from services.edge.frames import field_failure, reported_keys
from services.edge.video.messages import SamplingParams, SessionStart
from services.edge.video.open_fields import open_fields_failure
from services.edge.video.picture import picture_of
from services.edge.video.sizing import MESSAGE, extent_of, unsupported
from services.edge.video.terms import VideoTerms


@dataclass(frozen=True, slots=True)
class Agreement:
    """What is asked of the service, and what the client has to be told about it."""

    request: GenerationRequest
    capabilities: VideoCapabilities
    warnings: tuple[str, ...] = ()


def negotiate(
    start: SessionStart,
    reported: tuple[str, ...],
    capabilities: VideoCapabilities,
    terms: VideoTerms,
) -> Agreement | Failure:
    """Return what is asked of the service, or why that cannot be.

    `reported` are the warnings of the codec about keys that mean nothing.
    """
    warnings = list(reported)
    try:
        if start.model not in (None, "", capabilities.model):
            warnings.append(f"model is not served; {capabilities.model} is used")
        codec = _codec(start, capabilities)
        extent = extent_of(start, codec, capabilities, terms.limits, warnings)
        pace, lead_s = _pace(start, warnings)
        request = GenerationRequest(
            identity=GenerationIdentity(terms.session_id, terms.request_id),
            prompt=_prompt(start.prompt, terms),
            initial_credits=terms.limits.chunks_ahead,
            negative_prompt=_negative_prompt(start, capabilities, terms, warnings),
            width=extent.width,
            height=extent.height,
            frame_rate=Fraction(extent.frames_per_second) if extent.frames_per_second else None,
            codec=codec,
            num_frames=extent.num_frames,
            endless=bool(start.endless),
            options=_options(start, capabilities, warnings),
            seed=_either(start, "seed"),
            image=_image(start, capabilities),
            extra_params=_extra_params(start, capabilities, warnings),
            pace=pace,
            lead_seconds=lead_s,
        )
        if terms.strict and warnings:
            raise _strict(warnings)
    except WeirError as refusal:
        return refusal.failure
    return Agreement(request, capabilities, tuple(warnings))


def prompt_expected(limit: int) -> str:
    """Return what a prompt must be, for an error."""
    return f"text that is not blank, at most {limit} characters"


def _prompt(prompt: str, terms: VideoTerms) -> str:
    limit = terms.limits.prompt_characters
    if not prompt.strip() or len(prompt) > limit:
        raise WeirError(field_failure(MESSAGE, "prompt", prompt_expected(limit)))
    return prompt


def _negative_prompt(
    start: SessionStart, capabilities: VideoCapabilities, terms: VideoTerms, warnings: list[str]
) -> str | None:
    text: str | None = _either(start, "negative_prompt")
    limit = terms.limits.prompt_characters
    if text is not None and len(text) > limit:
        raise WeirError(field_failure(MESSAGE, "negative_prompt", f"at most {limit} characters"))
    if not text or "negative_prompt" in capabilities.options:
        return text or None
    warnings.append(_unread("negative_prompt"))
    return None


def _options(
    start: SessionStart, capabilities: VideoCapabilities, warnings: list[str]
) -> Mapping[str, int | float]:
    chosen: dict[str, int | float] = {}
    for name in OPTION_RANGES:
        value = _either(start, name)
        if value is None:
            continue
        # WEIR-157: the range was checked when the message was read.
        if name in capabilities.options:
            chosen[name] = value
        else:
            warnings.append(_unread(name))
    return chosen


def _extra_params(
    start: SessionStart, capabilities: VideoCapabilities, warnings: list[str]
) -> Mapping[str, object]:
    given = start.extra_params or {}
    # WEIR-157: names that nobody declared are never passed on blindly.
    known = {name: value for name, value in given.items() if name in capabilities.extra_params}
    unknown = [name for name in given if name not in capabilities.extra_params]
    warnings += reported_keys(f"{MESSAGE}.extra_params", unknown)
    refusal = open_fields_failure(MESSAGE, "extra_params", known)
    if refusal is not None:
        raise WeirError(refusal)
    return known


def _codec(start: SessionStart, capabilities: VideoCapabilities) -> VideoCodec:
    if start.codec is None:
        default = VideoCodec.H264
        return default if default in capabilities.codecs else capabilities.codecs[0]
    codec = VideoCodec(start.codec)
    if codec not in capabilities.codecs:
        offered = ", ".join(capabilities.codecs)
        raise unsupported("codec", f"The codec must be one of {offered}.")
    return codec


def _image(start: SessionStart, capabilities: VideoCapabilities) -> bytes | None:
    if start.image_reference is None:
        return None
    # WEIR-157: without its picture the video would be another one.
    if not capabilities.image_reference:
        raise unsupported("image_reference", "The model does not take an image_reference.")
    return picture_of(start.image_reference)


def _pace(start: SessionStart, warnings: list[str]) -> tuple[Pace, float]:
    pace = Pace(start.pace or Pace.FREE)
    if start.lead_seconds is not None and pace is Pace.FREE:
        warnings.append("lead_seconds is ignored: it counts with the pace realtime only")
    lead_s = DEFAULT_LEAD_SECONDS if start.lead_seconds is None else start.lead_seconds
    return pace, lead_s


def _either(start: SessionStart, name: str) -> Any:
    """Return a field of the message, or else the one of `sampling_params`; its type holds."""
    value = getattr(start, name)
    params = start.sampling_params or SamplingParams()
    return getattr(params, name) if value is None else value


def _unread(name: str) -> str:
    return f"{name} is ignored: the model does not read it"


def _strict(warnings: list[str]) -> WeirError:
    """Return the refusal of everything that would be ignored otherwise."""
    return WeirError(
        failure(
            Reason.UNSUPPORTED_OPTION,
            "Not everything that was asked for can be done: " + "; ".join(warnings) + ".",
        )
    )
