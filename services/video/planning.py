"""A request against what the model can do.

Owns: the decision whether a generation can be carried out, and what then is in force. Does not own:
the wire (`services.video.wire`), the picture of an image reference (`reference_image`). Enforces:
WEIR-225 (only declared options and parameters reach a model; everything else is refused, with all
offending fields named).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from contracts.errors import FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.generation import GenerationRequest
from contracts.video import VideoCapabilities
from services.video.gate import Pacing
from services.video.media.formats import VideoFormat


@dataclass(frozen=True, slots=True)
class Plan:
    """What is in force. Sizes in pixels; `num_frames` None: there is no end."""

    request: GenerationRequest
    width: int
    height: int
    frame_rate: Fraction
    num_frames: int | None
    seed: int

    @property
    def format(self) -> VideoFormat:
        """What the encoder is told."""
        return VideoFormat(self.width, self.height, self.frame_rate)


def plan(
    request: GenerationRequest, capabilities: VideoCapabilities, *, max_pixels: int, seed: int
) -> Plan:
    """Return what is in force for `request`; `seed` is taken when it names none.

    Raises WeirError (UNSUPPORTED_OPTION, INVALID_ARGUMENT) naming every field that the model does
    not do.
    """
    width = request.width or capabilities.default_width
    height = request.height or capabilities.default_height
    rate = request.frame_rate or Fraction(capabilities.frames_per_second)
    violations = [
        *_size(width, height, rate, capabilities, max_pixels),
        *_length(request, capabilities),
        *_options(request, capabilities),
    ]
    if violations:
        fields = ", ".join(violation.field for violation in violations)
        raise WeirError(
            failure(
                Reason.UNSUPPORTED_OPTION,
                f"The model does not do what the request asks for in: {fields}.",
                code=GrpcCode.INVALID_ARGUMENT,
                violations=tuple(violations),
            )
        )
    num_frames = None if request.endless else request.num_frames or capabilities.default_num_frames
    return Plan(
        request,
        width,
        height,
        rate,
        num_frames,
        seed if request.seed is None else request.seed,
    )


def pacing(planned: Plan, capabilities: VideoCapabilities) -> Pacing:
    """Return what the gate of a planned generation goes by."""
    request = planned.request
    return Pacing(
        frame_rate=planned.frame_rate,
        num_frames=planned.num_frames,
        first_chunk_frames=capabilities.first_chunk_frames,
        chunk_frames=capabilities.chunk_frames,
        initial_credits=request.initial_credits,
        pace=request.pace,
        lead_seconds=request.lead_seconds,
    )


def _size(
    width: int, height: int, rate: Fraction, capabilities: VideoCapabilities, max_pixels: int
) -> list[FieldViolation]:
    found = []
    unit = capabilities.size_multiple
    if width % unit or height % unit:
        near_width, near_height = capabilities.nearest_size(width, height)
        found.append(
            FieldViolation(
                "output.width" if width % unit else "output.height",
                f"Must be a multiple of {unit}; the nearest size is {near_width}x{near_height}.",
            )
        )
    elif width * height > max_pixels:
        found.append(
            FieldViolation("output.width", f"With the height at most {max_pixels} pixels.")
        )
    else:
        try:
            VideoFormat(width, height, rate)
        except ValueError:
            found.append(
                FieldViolation(
                    "output", "Must be a size and a frame rate that the video encoder can do."
                )
            )
    return found


def _length(request: GenerationRequest, capabilities: VideoCapabilities) -> list[FieldViolation]:
    most = capabilities.max_num_frames
    if most is None:
        return []
    if request.endless:
        return [FieldViolation("endless", f"The model ends after {most} frames.")]
    if (request.num_frames or 0) > most:
        return [FieldViolation("num_frames", f"Must be at most {most}.")]
    return []


def _options(request: GenerationRequest, capabilities: VideoCapabilities) -> list[FieldViolation]:
    # WEIR-225: never passed on blindly, never dropped in silence.
    given = [
        *request.options,
        *(["negative_prompt"] if request.negative_prompt is not None else []),
    ]
    found = [
        FieldViolation(name, "The model does not read it.")
        for name in given
        if name not in capabilities.options
    ]
    if not request.extra_params.keys() <= capabilities.extra_params:
        known = ", ".join(sorted(capabilities.extra_params)) or "none"
        found.append(FieldViolation("extra_params", f"The model reads: {known}."))
    if request.image is not None and not capabilities.image_reference:
        found.append(FieldViolation("image_reference", "The model reads no picture."))
    if request.codec not in capabilities.codecs:
        offered = ", ".join(codec.value for codec in capabilities.codecs)
        found.append(FieldViolation("output.codec", f"The replica offers: {offered}."))
    return found
