"""`google.protobuf.Struct` into plain values.

Owns: the conversion of the free parameters that travel as Struct. Does not own: which names a model
reads. Enforces: WEIR-238 (a number is compared by its value, so 3 equals 3.0, and is finite; null
is the same as absent).
"""

from __future__ import annotations

import math

from google.protobuf import struct_pb2


def plain(struct: struct_pb2.Struct) -> dict[str, object]:
    """Return the fields of `struct`, null ones left out; whole numbers are int.

    Values are str, bool, int, float, None (inside a list or a nested object only), list and dict.
    Raises ValueError for a number that is not finite and for a value of no kind.
    """
    fields = {name: _value(value) for name, value in struct.fields.items()}
    return {name: value for name, value in fields.items() if value is not None}


def _value(value: struct_pb2.Value) -> object:
    match value.WhichOneof("kind"):
        case "null_value":
            return None
        case "number_value":
            return _number(value.number_value)
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "list_value":
            return [_value(item) for item in value.list_value.values]
        case "struct_value":
            return {name: _value(item) for name, item in value.struct_value.fields.items()}
        case _:
            raise ValueError("a value has no kind")


def _number(number: float) -> int | float:
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return int(number) if number.is_integer() else number
