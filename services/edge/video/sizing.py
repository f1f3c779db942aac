"""How large and how long the video will be, from the several fields that can say so.

Owns: which field wins, and the limits of size, rate and length. Does not own: all other fields
(`negotiation`). Enforces: WEIR-158 (`width`, `height` and `num_frames` win over `size` and
`seconds`, these over `sampling_params`; half a size is refused; a size that the model cannot do is
refused with the nearest one).
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.video import VideoCapabilities
from services.edge.frames import field_failure
from services.edge.video.messages import SamplingParams, SessionStart
from services.edge.video.terms import VideoLimits

MESSAGE = "session.start"


@dataclass(frozen=True, slots=True)
class Extent:
    """Size in pixels, rate in frames per second, length in frames.

    A size or rate of 0 and a length of None are left to the model.
    """

    width: int
    height: int
    frames_per_second: int
    num_frames: int | None


def extent_of(
    start: SessionStart,
    capabilities: VideoCapabilities,
    limits: VideoLimits,
    warnings: list[str],
) -> Extent:
    """Return what a start asks for; what is overruled is added to `warnings`.

    Raises WeirError for what contradicts itself or what the model cannot do.
    """
    params = start.sampling_params or SamplingParams()
    width, height = _size(start, params, warnings)
    if width:
        _check_size(width, height, capabilities, limits)
    rate = start.fps or params.fps or 0
    if rate > limits.max_frames_per_second:
        raise _invalid("fps", f"at most {limits.max_frames_per_second}")
    num_frames = _length(start, params, rate or capabilities.frames_per_second, warnings)
    _check_length(num_frames, bool(start.endless), capabilities, limits)
    return Extent(width, height, rate, num_frames)


def unsupported(path: str, message: str) -> WeirError:
    """Return the refusal of a field that the model cannot do as asked; `message` says why."""
    return WeirError(
        failure(
            Reason.UNSUPPORTED_OPTION,
            message,
            code=GrpcCode.INVALID_ARGUMENT,
            violations=(FieldViolation(path, message),),
        )
    )


def nearest_size(
    width: int, height: int, capabilities: VideoCapabilities, max_pixels: int
) -> tuple[int, int]:
    """Return a size near to this one that the model can do within `max_pixels`."""
    near_width, near_height = capabilities.nearest_size(width, height)
    unit = capabilities.size_multiple
    if near_width * near_height > max_pixels:
        # The same shape, as large as it may be.
        scale = (max_pixels / (width * height)) ** 0.5
        near_width = max(unit, int(width * scale) // unit * unit)
        near_height = max(unit, min(int(height * scale), max_pixels // near_width) // unit * unit)
    return near_width, near_height


def _size(start: SessionStart, params: SamplingParams, warnings: list[str]) -> tuple[int, int]:
    explicit = _pair(start.width, start.height, "")
    text = None if start.size is None else _parsed_size(start.size)
    if explicit is not None:
        if text not in (None, explicit):
            warnings.append("size is ignored, since width and height are given")
        return explicit
    return text or _pair(params.width, params.height, "sampling_params.") or (0, 0)


def _pair(width: int | None, height: int | None, prefix: str) -> tuple[int, int] | None:
    if (width is None) != (height is None):
        missing = "height" if height is None else "width"
        raise _invalid(prefix + missing, "given, since the other side of the size is")
    return None if width is None or height is None else (width, height)


def _parsed_size(size: str) -> tuple[int, int]:
    width, _, height = size.lower().partition("x")
    if int(width) < 1 or int(height) < 1:
        raise _invalid("size", "WIDTHxHEIGHT, both at least 1")
    return int(width), int(height)


def _check_size(
    width: int, height: int, capabilities: VideoCapabilities, limits: VideoLimits
) -> None:
    unit = capabilities.size_multiple
    fits = width * height <= limits.max_pixels
    if fits and width % unit == 0 and height % unit == 0:
        return
    # WEIR-158: the client is told what it can ask for instead.
    near_width, near_height = nearest_size(width, height, capabilities, limits.max_pixels)
    rule = (
        f"multiples of {unit}"
        if fits
        else f"multiples of {unit} with at most {limits.max_pixels} pixels together"
    )
    raise unsupported(
        "width", f"Width and height must be {rule}; the nearest size is {near_width}x{near_height}."
    )


def _length(
    start: SessionStart, params: SamplingParams, rate: int, warnings: list[str]
) -> int | None:
    from_seconds = None if start.seconds is None else int(start.seconds) * rate
    if start.endless:
        if start.num_frames is not None or from_seconds is not None:
            raise _invalid("endless", "left out when num_frames or seconds is given")
        if params.num_frames is not None:
            warnings.append("sampling_params.num_frames is ignored, since the video is endless")
        return None
    if start.num_frames is not None:
        if from_seconds not in (None, start.num_frames):
            warnings.append("seconds is ignored, since num_frames is given")
        return start.num_frames
    if from_seconds is not None:
        if from_seconds < 1:
            raise _invalid("seconds", "at least 1")
        return from_seconds
    return params.num_frames


def _check_length(
    num_frames: int | None, endless: bool, capabilities: VideoCapabilities, limits: VideoLimits
) -> None:
    if num_frames is not None and num_frames > limits.max_num_frames:
        raise _invalid("num_frames", f"at most {limits.max_num_frames}")
    most = capabilities.max_num_frames
    if most is None:
        return
    if endless:
        raise unsupported("endless", f"The model cannot go on for ever; it ends at {most} frames.")
    if num_frames is not None and num_frames > most:
        raise unsupported("num_frames", f"The model makes at most {most} frames.")


def _invalid(path: str, expected: str) -> WeirError:
    return WeirError(field_failure(MESSAGE, path, expected))
