"""Free parameters off the wire."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2

from services.video.structs import plain


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    return json_format.ParseDict(value, struct_pb2.Struct())


VALUES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"a": 3.0}, {"a": 3}),
    ({"a": 3.5, "b": -0.0}, {"a": 3.5, "b": 0}),
    ({"a": True, "b": "x"}, {"a": True, "b": "x"}),
    ({"a": None}, {}),
    ({"a": [1, None, {"b": None}]}, {"a": [1, None, {"b": None}]}),
    ({"a": {"b": {"c": [2.0]}}}, {"a": {"b": {"c": [2]}}}),
]


@pytest.mark.parametrize(("sent", "read"), VALUES)
def test_values_are_read_as_what_they_are(sent: dict[str, Any], read: dict[str, Any]) -> None:
    """WEIR-238: whole numbers are int, null is absent, a truth value stays one."""
    made = plain(struct(sent))
    assert made == read
    # Fields come off the wire in any order.
    assert {name: type(value) for name, value in made.items()} == {
        name: type(value) for name, value in read.items()
    }


def test_a_whole_number_is_an_int() -> None:
    """WEIR-238: 3 equals 3.0, in every depth."""
    made = plain(struct({"a": 3.0, "b": [4.0]}))
    assert isinstance(made["a"], int)
    assert made["b"] == [4]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_are_finite(number: float) -> None:
    """WEIR-238: anything else is refused, wherever it is."""
    message = struct_pb2.Struct()
    message.fields["a"].list_value.values.add().number_value = number
    with pytest.raises(ValueError, match="finite"):
        plain(message)


def test_a_value_of_no_kind_is_refused() -> None:
    """WEIR-238: it would be dropped in silence."""
    message = struct_pb2.Struct()
    message.fields["a"].SetInParent()
    with pytest.raises(ValueError, match="no kind"):
        plain(message)
