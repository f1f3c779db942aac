"""How large and how long the video will be, from the several fields that can say so.

Owns: which field wins, and the limits of size, rate and length. Does not own: all other fields
(`negotiation`). Enforces: WEIR-158 (`width`, `height` and `num_frames` win over `size` and
`seconds`, these over `sampling_params`; half a size is refused; a size that the model or the codec
cannot do is refused with the nearest one that both can).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from contracts.errors import FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.video import (
    LEAST_SIDE,
    MAX_PICTURE_PIXELS,
    MAX_SIDE,
    VideoCapabilities,
    VideoCodec,
)
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
    codec: VideoCodec,
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
        _check_size(width, height, codec, capabilities, limits)
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
    width: int, height: int, codec: VideoCodec, capabilities: VideoCapabilities, max_pixels: int
) -> tuple[int, int] | None:
    """Return a size near to this one that is within the bounds; None when there is no size."""
    return _bounds(codec, capabilities, max_pixels).nearest(width, height)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What a size must keep to: sides that are multiples of `unit` from `least` to `most`, which
    are multiples themselves, and at most `max_pixels` together."""

    unit: int
    least: int
    most: int
    max_pixels: int

    def hold(self, width: int, height: int) -> bool:
        sides = all(
            self.least <= side <= self.most and side % self.unit == 0 for side in (width, height)
        )
        return sides and width * height <= self.max_pixels

    def nearest(self, width: int, height: int) -> tuple[int, int] | None:
        if self.least > self.most or self.least**2 > self.max_pixels:
            return None
        unit = self.unit
        near_width = self._side(round(width / unit) * unit)
        near_height = self._side(round(height / unit) * unit)
        if near_width * near_height > self.max_pixels:
            # The same shape, as large as it may be; the other side still has room for `least`.
            scale = (self.max_pixels / (width * height)) ** 0.5
            near_width = self._side(min(int(width * scale), self.max_pixels // self.least))
            near_height = self._side(min(int(height * scale), self.max_pixels // near_width))
        return near_width, near_height

    def _side(self, pixels: int) -> int:
        return min(self.most, max(self.least, pixels // self.unit * self.unit))


def _bounds(codec: VideoCodec, capabilities: VideoCapabilities, max_pixels: int) -> _Bounds:
    # Two pixels share a colour sample, so a side is even whatever the model's multiple is.
    unit = lcm(capabilities.size_multiple, 2)
    least = -(-LEAST_SIDE[codec] // unit) * unit
    return _Bounds(unit, least, MAX_SIDE // unit * unit, min(max_pixels, MAX_PICTURE_PIXELS))


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
    width: int,
    height: int,
    codec: VideoCodec,
    capabilities: VideoCapabilities,
    limits: VideoLimits,
) -> None:
    bounds = _bounds(codec, capabilities, limits.max_pixels)
    if bounds.hold(width, height):
        return
    # WEIR-158: the client is told what it can ask for instead.
    near = bounds.nearest(width, height)
    rule = f"Width and height must be multiples of {bounds.unit}"
    if min(width, height) < bounds.least or max(width, height) > bounds.most:
        rule += f" from {bounds.least} to {bounds.most} with the codec {codec}"
    if width * height > bounds.max_pixels:
        rule += f" with at most {bounds.max_pixels} pixels together"
    advice = "there is none" if near is None else f"the nearest size is {near[0]}x{near[1]}"
    raise unsupported("width", f"{rule}; {advice}.")


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
