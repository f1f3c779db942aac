"""The options of a model adapter: text of the environment into the adapter's own typed record.

Owns: reading `name=value` lists and making records of them. Does not own: which options there are,
which variable they come from. Enforces: every wrong option is reported, all of them in one error.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

Record = TypeVar("Record")


def parse_option_list(text: str) -> dict[str, str]:
    """Read `name=value,name=value`; white space around names and values is dropped.

    Raises ValueError for a part without `=`, an empty name or a name given twice.
    """
    options: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not name or name in options:
            raise ValueError(f"adapter options are name=value, each name once; not {part!r}")
        options[name] = value
    return options


def read_options(record: type[Record], options: Mapping[str, str]) -> Record:
    """Make a `record` (a dataclass of plain values) from options given as text.

    Raises ValueError naming every unknown option and every value of the wrong type, or what the
    record itself refuses. A field of `T | None` reads an empty value as None.
    """
    known = {entry.name for entry in fields(record)}  # type: ignore[arg-type]  # always a dataclass
    hints = typing.get_type_hints(record)
    problems: list[str] = []
    values: dict[str, Any] = {}
    for name, text in options.items():
        if name not in known:
            problems.append(f"unknown option {name} (known: {', '.join(sorted(known))})")
            continue
        try:
            values[name] = _convert(hints[name], text)
        except ValueError:
            problems.append(f"option {name} cannot be {text!r}")
    if problems:
        raise ValueError("; ".join(problems))
    return record(**values)


def _convert(hint: Any, text: str) -> Any:
    if isinstance(hint, types.UnionType):
        if not text:
            return None
        hint = next(kind for kind in typing.get_args(hint) if kind is not types.NoneType)
    return _READERS[hint](text)


def _read_bool(text: str) -> bool:
    truth = {"1": True, "true": True, "0": False, "false": False}.get(text.lower())
    if truth is None:
        raise ValueError(text)
    return truth


_READERS: dict[type, Callable[[str], object]] = {
    bool: _read_bool,
    int: int,
    float: float,
    str: str,
    Path: Path,
}
