"""The types that a setting can have.

Owns: reading each from the text of a variable, and its name on the reference page. Does not own:
declaring and checking settings (`settings`). Enforces: WEIR-050 (what a value must be is told).
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _parse_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("a finite number")
    return value


def _parse_bool(text: str) -> bool:
    folded = text.casefold()
    if folded not in _TRUE | _FALSE:
        raise ValueError("one of 1, 0, true, false, yes, no, on, off")
    return folded in _TRUE


def _parse_texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


TEXTS = tuple[str, ...]
"""The type of a list."""

PARSERS: Mapping[Any, Callable[[str], Any]] = types.MappingProxyType(
    {
        str: str,
        int: _parse_int,
        float: _parse_float,
        bool: _parse_bool,
        Path: Path,
        TEXTS: _parse_texts,
    }
)
"""Reads each type from text; raises ValueError with what the text is not."""

KIND_NAMES = types.MappingProxyType(
    {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "yes or no",
        Path: "path",
        TEXTS: "list, separated by commas",
    }
)
"""What each type is called."""


def kind_of(hint: Any) -> Any:
    """Return the plain type of a hint, without `| None`. Raises TypeError for one not supported."""
    kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    kind = kinds[0] if is_union and len(kinds) == 1 else hint
    if kind not in PARSERS:
        raise TypeError(f"a setting cannot be a {hint}")
    return kind
