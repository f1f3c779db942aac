"""Text frames to messages and back, for any set of messages.

Owns: JSON decoding with its limits, the sentences about what is wrong with a frame, encoding. Does
not own: the fields (the `messages` of an endpoint), what a message does (its core). Enforces:
WEIR-210 (a frame is refused whole, with the field's path), WEIR-301 (unknown keys ignored and
reported, unknown types refused), WEIR-201 (no user text in an error).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from contracts.errors import Failure, FieldViolation, Reason, failure

Message = TypeVar("Message", bound=msgspec.Struct)

_MAX_REPORTED_KEYS = 8
_MAX_KEY_CHARACTERS = 64

_PATH = re.compile(r"`\$\.?([A-Za-z0-9_\[\].]*)`$")
_EXPECTED = re.compile(r"^Expected (.+?)(?:, got .*)?(?: - at .*)?$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `([A-Za-z0-9_]+)`")
_UNKNOWN = "Object contains unknown field "
_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class DecodedFrame(Generic[Message]):
    """A valid client message and a warning for every key that means nothing."""

    message: Message
    warnings: tuple[str, ...] = ()


class FrameCodec(Generic[Message]):
    """Decodes the client messages of one endpoint; `large` is the one with the larger limit."""

    __slots__ = ("_large", "_types")

    def __init__(
        self, messages: tuple[type[msgspec.Struct], ...], *, large: type[msgspec.Struct]
    ) -> None:
        self._types = {str(struct.__struct_config__.tag): struct for struct in messages}
        self._large = large

    def decode(
        self, frame: str, *, max_large_characters: int, max_message_characters: int
    ) -> DecodedFrame[Message] | Failure:
        """Decode one text frame.

        Returns a `Failure` with INVALID_MESSAGE or MESSAGE_TOO_LARGE for a frame that is not a
        valid message; the session's state is untouched by it.
        """
        if len(frame) > max(max_large_characters, max_message_characters):
            return _too_large(max(max_large_characters, max_message_characters))
        try:
            # Lone surrogates, NaN and numbers out of range are refused by the decoder itself.
            fields: Any = _DECODER.decode(frame)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeEncodeError):
            return failure(Reason.INVALID_MESSAGE, "The frame is not valid JSON.")
        if not isinstance(fields, dict):
            return failure(Reason.INVALID_MESSAGE, "The frame is not a JSON object.")
        name = fields.get("type")
        struct = self._types.get(name) if isinstance(name, str) else None
        if struct is None:
            return failure(
                Reason.INVALID_MESSAGE,
                "The message has no known type; the types are " + ", ".join(self._types) + ".",
                violations=(FieldViolation("type", "must be a known message type"),),
            )
        limit = max_large_characters if struct is self._large else max_message_characters
        if len(frame) > limit:
            return _too_large(limit)
        try:
            message = msgspec.convert(fields, struct)
        except (msgspec.ValidationError, RecursionError) as error:
            return _invalid_field(cast("str", name), struct, str(error))
        # WEIR-301: what is not understood is named, never silently dropped.
        unknown = list(_unknown_keys(fields, message, ""))
        return DecodedFrame(cast("Message", message), reported_keys(cast("str", name), unknown))


def encode(message: msgspec.Struct) -> str:
    """Encode one server message as a text frame."""
    return _ENCODER.encode(message).decode()


def reported_keys(name: str, keys: list[str]) -> tuple[str, ...]:
    """Return a warning for every key of `name` that means nothing; a bounded number of them."""
    reported = [
        f"unknown key ignored: {name}.{key[:_MAX_KEY_CHARACTERS]}"
        for key in keys[:_MAX_REPORTED_KEYS]
    ]
    if len(keys) > _MAX_REPORTED_KEYS:
        reported.append(f"{len(keys) - _MAX_REPORTED_KEYS} more unknown keys ignored in {name}")
    return tuple(reported)


def field_failure(name: str, path: str, expected: str) -> Failure:
    """Return that a field of the message `name` is not what it must be; no value stands in it."""
    return failure(
        Reason.INVALID_MESSAGE,
        f"The field {path} of {name} must be {expected}.",
        violations=(FieldViolation(path, f"must be {expected}"),),
    )


def _too_large(limit: int) -> Failure:
    return failure(
        Reason.MESSAGE_TOO_LARGE, f"The message is longer than its limit of {limit} characters."
    )


def _unknown_keys(fields: dict[str, Any], message: msgspec.Struct, prefix: str) -> Iterator[str]:
    """Give the keys that no field of the message, or of a record within it, has read."""
    known = message.__struct_fields__
    for key, value in fields.items():
        if key not in known:
            if prefix or key != "type":
                yield prefix + key
            continue
        inner = getattr(message, key)
        if isinstance(inner, msgspec.Struct) and isinstance(value, dict):
            yield from _unknown_keys(value, inner, f"{prefix}{key}.")


def _invalid_field(name: str, struct: type[msgspec.Struct], problem: str) -> Failure:
    """Turn the decoder's complaint into a fixed sentence: path and expectation, never the value."""
    path = match.group(1) if (match := _PATH.search(problem)) else ""
    if match := _MISSING.match(problem):
        return field_failure(name, f"{path}.{match.group(1)}".lstrip("."), "given")
    if problem.startswith(_UNKNOWN):
        return field_failure(name, path, "without keys that are not known")
    field = path.split("[")[0].split(".")[0]
    choices = _choices(get_type_hints(struct).get(field))
    if choices:
        expected = "one of " + ", ".join(choices)
    elif match := _EXPECTED.match(problem):
        expected = match.group(1).replace("`", "")
    else:
        expected = "a valid value"
    return field_failure(name, path or "type", expected)


def _choices(hint: object) -> list[str]:
    """Return the allowed values of a field whose type is a set of literals."""
    found: list[str] = []
    for option in get_args(hint) or (hint,):
        if get_origin(option) is Literal:
            found += [str(value) for value in get_args(option)]
    return found
