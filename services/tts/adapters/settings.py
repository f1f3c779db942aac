"""What an adapter is told when it is made.

Owns: the record every adapter's constructor takes, and reading free `name=value` options into
an adapter's own typed record. Does not own: environment variables (`services.tts` reads those) or
what any option means. Enforces: every wrong option is reported, all of them in one error.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

DEFAULT_MODEL_DIR = Path(".models")

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """Settings of one adapter, read once at start-up.

    `model_dir` is the folder of downloaded model files. `concurrency` is how many utterances the
    operator wants spoken at once, None for the adapter's choice. `options` are the adapter's own
    settings as text; an adapter reads them with `read_options` into a record of its own, so a new
    adapter adds options without a new field here.
    """

    model_dir: Path = DEFAULT_MODEL_DIR
    concurrency: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise ValueError("concurrency is at least 1")


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
