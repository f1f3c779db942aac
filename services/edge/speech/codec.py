"""Text frames to messages and back.

Owns: JSON decoding with its limits, the sentences about what is wrong with a frame, encoding. Does
not own: the fields (`messages`), what a message does (`core`). Enforces: WEIR-210 (a frame is
refused whole, with the field's path), WEIR-301 (unknown keys ignored and reported, unknown types
refused), WEIR-201 (no user text in an error).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from contracts.errors import Failure, FieldViolation, Reason, failure
from services.edge.speech.messages import (
    CLIENT_MESSAGES,
    ClientMessage,
    ServerMessage,
    SessionConfig,
)

_MAX_REPORTED_KEYS = 8
_MAX_KEY_CHARACTERS = 64

_TYPES: dict[str, type[msgspec.Struct]] = {
    str(struct.__struct_config__.tag): struct for struct in CLIENT_MESSAGES
}
_FIELDS = {name: frozenset(struct.__struct_fields__) for name, struct in _TYPES.items()}
_PATH = re.compile(r"`\$\.?([A-Za-z0-9_\[\].]*)`$")
_EXPECTED = re.compile(r"^Expected (.+?)(?:, got .*)?(?: - at .*)?$", re.DOTALL)
_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class DecodedFrame:
    """A valid client message and a warning for every key that means nothing."""

    message: ClientMessage
    warnings: tuple[str, ...] = ()


def decode(
    frame: str, *, max_config_characters: int, max_message_characters: int
) -> DecodedFrame | Failure:
    """Decode one text frame.

    Returns a `Failure` with INVALID_MESSAGE or MESSAGE_TOO_LARGE for a frame that is not a valid
    message; the session's state is untouched by it.
    """
    if len(frame) > max(max_config_characters, max_message_characters):
        return _too_large(max(max_config_characters, max_message_characters))
    try:
        # Lone surrogates, NaN and numbers out of range are refused by the decoder itself.
        fields: Any = _DECODER.decode(frame)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeEncodeError):
        return failure(Reason.INVALID_MESSAGE, "The frame is not valid JSON.")
    if not isinstance(fields, dict):
        return failure(Reason.INVALID_MESSAGE, "The frame is not a JSON object.")
    name = fields.get("type")
    struct = _TYPES.get(name) if isinstance(name, str) else None
    if struct is None:
        return failure(
            Reason.INVALID_MESSAGE,
            "The message has no known type; the types are " + ", ".join(_TYPES) + ".",
            violations=(FieldViolation("type", "must be a known message type"),),
        )
    limit = max_config_characters if struct is SessionConfig else max_message_characters
    if len(frame) > limit:
        return _too_large(limit)
    try:
        message = msgspec.convert(fields, struct)
    except (msgspec.ValidationError, RecursionError) as error:
        return _invalid_field(cast("str", name), struct, str(error))
    # WEIR-301: what is not understood is named, never silently dropped.
    unknown = [key for key in fields if key not in _FIELDS[cast("str", name)] and key != "type"]
    return DecodedFrame(cast("ClientMessage", message), _unknown_keys(cast("str", name), unknown))


def encode(message: ServerMessage) -> str:
    """Encode one server message as a text frame."""
    return _ENCODER.encode(message).decode()


def _too_large(limit: int) -> Failure:
    return failure(
        Reason.MESSAGE_TOO_LARGE, f"The message is longer than its limit of {limit} characters."
    )


def _unknown_keys(name: str, keys: list[str]) -> tuple[str, ...]:
    reported = [
        f"unknown key ignored: {name}.{key[:_MAX_KEY_CHARACTERS]}"
        for key in keys[:_MAX_REPORTED_KEYS]
    ]
    if len(keys) > _MAX_REPORTED_KEYS:
        reported.append(f"{len(keys) - _MAX_REPORTED_KEYS} more unknown keys ignored in {name}")
    return tuple(reported)


def _invalid_field(name: str, struct: type[msgspec.Struct], problem: str) -> Failure:
    """Turn the decoder's complaint into a fixed sentence: path and expectation, never the value."""
    path = match.group(1) if (match := _PATH.search(problem)) else ""
    field = path.split("[")[0].split(".")[0]
    choices = _choices(get_type_hints(struct).get(field))
    if choices:
        expected = "one of " + ", ".join(choices)
    elif match := _EXPECTED.match(problem):
        expected = match.group(1).replace("`", "")
    else:
        expected = "a valid value"
    return failure(
        Reason.INVALID_MESSAGE,
        f"The field {path or 'type'} of {name} must be {expected}.",
        violations=(FieldViolation(path or "type", f"must be {expected}"),),
    )


def _choices(hint: object) -> list[str]:
    """Return the allowed values of a field whose type is a set of literals."""
    found: list[str] = []
    for option in get_args(hint) or (hint,):
        if get_origin(option) is Literal:
            found += [str(value) for value in get_args(option)]
    return found
