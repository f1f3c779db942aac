"""Fields whose names only a model knows: `extra_params`, and what an event holds beside its prompt.

Owns: what their values may be, so that the wire to the service can hold them. Does not own: which
names a model reads (`contracts.video`), what their values mean (the adapter). Enforces: WEIR-165
(what the wire cannot hold is refused with its path, before anything is begun).
"""

from __future__ import annotations

from collections.abc import Mapping

from contracts.errors import Failure
from services.edge.frames import field_failure

MAX_DEPTH = 16
"""Levels of lists and objects within one field; the wire's own limit lies above it."""


def open_fields_failure(name: str, path: str, fields: Mapping[str, object]) -> Failure | None:
    """Return why the fields at `path` of the message `name` cannot travel; None when they can."""
    for value in fields.values():
        # WEIR-165: the path ends before the field's own name, which may be anything.
        if not _fits(value, MAX_DEPTH):
            return field_failure(
                name, path, f"plain values and numbers, at most {MAX_DEPTH} levels deep"
            )
    return None


def _fits(value: object, depth: int) -> bool:
    match value:
        case None | bool() | str() | float():
            return True
        case int():
            return _is_double(value)
        case list():
            return depth > 0 and all(_fits(item, depth - 1) for item in value)
        case dict():
            return depth > 0 and all(_fits(item, depth - 1) for item in value.values())
        case _:
            return False


def _is_double(number: int) -> bool:
    """Tell whether a number survives as a double, which is all that JSON and the wire promise."""
    try:
        return int(float(number)) == number
    except OverflowError:
        return False
