"""A request's parameters, checked before any of them reaches a model.

Owns: the check of a generation against what is declared, and of single values. Does not own: which
parameters a model has. Enforces: WEIR-354 (nothing undeclared and nothing of a wrong type is passed
on). Numbers come from JSON or protobuf, so a whole number may arrive as a float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from contracts.video import VideoCapabilities
from services.video.adapters.base import Generation


def check_generation(generation: Generation, capabilities: VideoCapabilities) -> None:
    """Raise ValueError for a size, option, parameter or picture that the model does not take."""
    unit = capabilities.size_multiple
    width, height = generation.width, generation.height
    if min(width, height) < 1 or width % unit or height % unit:
        near_width, near_height = capabilities.nearest_size(width, height)
        raise ValueError(
            f"width and height are multiples of {unit}; the nearest size is "
            f"{near_width}x{near_height}"
        )
    # WEIR-354: named, so that a misspelt parameter is found.
    unknown = sorted(set(generation.options) - capabilities.options)
    unknown += sorted(set(generation.extra_params) - capabilities.extra_params)
    if unknown:
        raise ValueError(f"the model does not read {', '.join(unknown)}")
    if generation.negative_prompt is not None and "negative_prompt" not in capabilities.options:
        raise ValueError("the model does not read negative_prompt")
    if generation.image is not None:
        if not capabilities.image_reference:
            raise ValueError("the model takes no picture")
        if generation.image.shape != (height, width, 3):
            raise ValueError("the picture has the size of the video")


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int within `low` to `high`. Raises ValueError naming the parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != _floor(value):
        raise ValueError(f"{name} is a whole number")
    if not low <= value <= high:
        raise ValueError(f"{name} is {low} to {high}")
    return int(value)


def number(name: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float within `low` to `high`. Raises ValueError naming the parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is a number")
    if not low <= value <= high:
        raise ValueError(f"{name} is {low:g} to {high:g}")
    return float(value)


def truth(name: str, value: object) -> bool:
    """Return `value` if it is a bool. Raises ValueError naming the parameter."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is true or false")
    return value


def whole_numbers(name: str, value: object, count: int, low: int, high: int) -> tuple[int, ...]:
    """Return `value` as `count` ints, each within `low` to `high`. Raises ValueError."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != count:
        raise ValueError(f"{name} is a list of {count} whole numbers")
    return tuple(whole_number(f"each of {name}", item, low, high) for item in value)


def _floor(value: int | float) -> int | float:
    return math.floor(value) if math.isfinite(value) else math.nan
