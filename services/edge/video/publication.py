"""What clients are told about the model and about what is in force.

Owns: the public form of video capabilities, limits and configuration. Does not own: when it is told
(`core`, `services.edge.documents`). Enforces: IO-INV-300 (internal records are translated into
public ones, field by field).
"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from contracts.generation import Accepted, GenerationRequest
from contracts.video import VideoCapabilities
from services.edge.video.terms import VideoLimits


def public_capabilities(capabilities: VideoCapabilities) -> dict[str, Any]:
    """Return what the model can do. Sizes in pixels, rates in frames per second."""
    return {
        "model": capabilities.model,
        "fps": capabilities.frames_per_second,
        "default_num_frames": capabilities.default_num_frames,
        "max_num_frames": capabilities.max_num_frames,
        "first_chunk_frames": capabilities.first_chunk_frames,
        "chunk_frames": capabilities.chunk_frames,
        "size_multiple": capabilities.size_multiple,
        "default_width": capabilities.default_width,
        "default_height": capabilities.default_height,
        "prompt_updates": capabilities.prompt_updates,
        "default_transition_chunks": capabilities.default_transition_chunks,
        "image_reference": capabilities.image_reference,
        "options": sorted(capabilities.options),
        "extra_params": sorted(capabilities.extra_params),
        "event_fields": sorted(capabilities.event_fields),
        "codecs": [codec.value for codec in capabilities.codecs],
    }


def public_limits(limits: VideoLimits) -> dict[str, Any]:
    """Return the limits of a session."""
    return asdict(limits)


def config_in_force(
    request: GenerationRequest, accepted: Accepted, capabilities: VideoCapabilities
) -> dict[str, Any]:
    """Return what holds for the generation; `num_frames` is null when there is no end."""
    return {
        "model": capabilities.model,
        "width": accepted.width,
        "height": accepted.height,
        "fps": _number(accepted.frame_rate),
        "num_frames": accepted.num_frames,
        "endless": request.endless,
        "first_chunk_frames": accepted.first_chunk_frames,
        "chunk_frames": accepted.chunk_frames,
        "default_transition_chunks": accepted.default_transition_chunks,
        "seed": accepted.seed,
        "pace": request.pace.value,
        "lead_seconds": request.lead_seconds,
        "image_reference": request.image is not None,
        **request.options,
        "extra_params": dict(request.extra_params),
    }


def _number(rate: Fraction) -> int | float:
    return rate.numerator if rate.denominator == 1 else float(rate)
