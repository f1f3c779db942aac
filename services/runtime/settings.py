"""Settings of a process, read once from environment variables.

Owns: how a frozen dataclass declares its variables, how they are read and checked, and what the
reference page needs to know about them. Does not own: any particular setting (each module declares
its own record), or when they are read (`__main__`). Enforces: WEIR-050 (a process reports every
problem of its settings in one error, and an unknown variable with its prefix is a problem).
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from services.runtime.setting_kinds import KIND_NAMES, PARSERS, TEXTS, kind_of

Record = TypeVar("Record")

_KEY = "weir.setting"


class Required(Enum):
    """Marks a setting that has no default."""

    REQUIRED = "required"


REQUIRED = Required.REQUIRED


class SettingsError(Exception):
    """Every problem of a process's environment, one line each; `problems` has them as a tuple."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Rule:
    """What one variable must be. `env` may start with `*_`: the prefix of the process."""

    env: str
    doc: str
    unit: str | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...] | None
    secret: bool


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """One line of the reference page. `default` None: the variable has none and must be set."""

    env: str
    kind: str
    default: str | None
    unit: str | None
    bounds: str
    doc: str


def setting(
    env: str,
    default: Any,
    doc: str,
    *,
    unit: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    secret: bool = False,
) -> Any:
    """Declare a field of a settings record as the variable `env`.

    The field's annotation is str, int, float, bool, Path, tuple[str, ...] (separated by commas) or
    one of these with `| None`. `env` is the whole name, or `*_NAME` in a record that several
    processes share: the process gives the prefix. `default` may be REQUIRED. `minimum` and
    `maximum` are inclusive and in `unit`. The value of a `secret` never stands in an error.
    """
    metadata = {_KEY: Rule(env, doc, unit, minimum, maximum, choices, secret)}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def group(record: type[Record]) -> Record:
    """Declare a field that holds another settings record, every setting of which has a default."""
    return dataclasses.field(default_factory=record, metadata={_KEY: record})


def read_settings(record: type[Record], environ: Mapping[str, str]) -> Record:
    """Build `record` from `environ`. A variable that is unset or empty takes its default.

    Raises SettingsError with all problems: values that do not parse or lie out of bounds, missing
    required ones, records that refuse their values (ValueError), and variables that carry the
    process's prefix but that nothing reads.
    """
    prefix = prefix_of(record)
    problems: list[str] = []
    settings = _build(record, prefix, environ, problems)
    known = [name for name, _ in _variables(record, prefix)]
    problems.extend(_unknown(environ, prefix, known))
    if problems or settings is None:
        raise SettingsError(tuple(problems))
    return settings


def describe(record: type[Any]) -> tuple[SettingDescription, ...]:
    """Describe every variable of `record`, groups included, in the order of declaration."""
    prefix = prefix_of(record)
    return tuple(
        SettingDescription(
            env,
            _kind_name(field.hint),
            _default_text(field),
            field.rule.unit,
            _bounds(field.rule),
            field.rule.doc,
        )
        for env, field in _variables(record, prefix)
    )


def prefix_of(record: type[Any]) -> str:
    """Return the prefix that every variable of this process carries, underscore included.

    Raises TypeError when the record's own variables carry none or more than one: a mistake here.
    """
    own = [f.rule.env for f in _fields(record) if isinstance(f, _Field)]
    prefixes = {env.partition("_")[0] for env in own} - {"*"}
    if len(prefixes) != 1:
        raise TypeError(f"{record.__name__} needs variables of exactly one prefix, not {prefixes}")
    return f"{prefixes.pop()}_"


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    hint: Any
    rule: Rule
    default: Any


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    record: type[Any]


def _fields(record: type[Any]) -> list[_Field | _Group]:
    hints = typing.get_type_hints(record)
    found: list[_Field | _Group] = []
    for field in dataclasses.fields(record):
        declared = field.metadata.get(_KEY)
        if isinstance(declared, Rule):
            default = REQUIRED if field.default is dataclasses.MISSING else field.default
            found.append(_Field(field.name, hints[field.name], declared, default))
        elif declared is not None:
            found.append(_Group(field.name, declared))
        else:
            raise TypeError(f"{record.__name__}.{field.name} is not declared with setting()")
    return found


def _variables(record: type[Any], prefix: str) -> list[tuple[str, _Field]]:
    found: list[tuple[str, _Field]] = []
    for field in _fields(record):
        if isinstance(field, _Group):
            found.extend(_variables(field.record, prefix))
        else:
            found.append((_env(field.rule, prefix), field))
    return found


def _env(rule: Rule, prefix: str) -> str:
    return prefix + rule.env[2:] if rule.env.startswith("*_") else rule.env


def _build(
    record: type[Record], prefix: str, environ: Mapping[str, str], problems: list[str]
) -> Record | None:
    before = len(problems)
    values: dict[str, Any] = {}
    for field in _fields(record):
        if isinstance(field, _Group):
            values[field.name] = _build(field.record, prefix, environ, problems)
            continue
        env = _env(field.rule, prefix)
        try:
            values[field.name] = _value(field, _text(environ, env))
        except ValueError as error:
            problems.append(f"{env}: {error}")
    if len(problems) > before:
        return None
    try:
        return record(**values)
    except ValueError as error:
        problems.append(str(error))
        return None


def _text(environ: Mapping[str, str], env: str) -> str:
    """Return the raw text of a variable. Secrets from files (`NAME_FILE`) belong here."""
    return environ.get(env, "").strip()


def _value(field: _Field, text: str) -> Any:
    kind = kind_of(field.hint)
    if not text:
        if field.default is REQUIRED:
            raise ValueError("is required")
        return field.default
    try:
        value = PARSERS[kind](text)
    except ValueError as error:
        shown = "the value" if field.rule.secret else repr(text)
        raise ValueError(f"{shown} is not {error}") from None
    _check(field.rule, value, kind)
    return value


def _check(rule: Rule, value: Any, kind: Any) -> None:
    unit = f" {rule.unit}" if rule.unit else ""
    if rule.minimum is not None and value < rule.minimum:
        raise ValueError(f"{value} is below the minimum of {rule.minimum}{unit}")
    if rule.maximum is not None and value > rule.maximum:
        raise ValueError(f"{value} is above the maximum of {rule.maximum}{unit}")
    if rule.choices is not None:
        items = value if kind == TEXTS else (value,)
        for item in items:
            if item not in rule.choices:
                shown = "the value" if rule.secret else repr(item)
                raise ValueError(f"{shown} is not one of {', '.join(rule.choices)}")


def _unknown(environ: Mapping[str, str], prefix: str, known: list[str]) -> list[str]:
    problems: list[str] = []
    for name in sorted(environ):
        if name.startswith(prefix) and name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            problems.append(f"{name}: is not a setting{hint}")
    return problems


def _kind_name(hint: Any) -> str:
    return KIND_NAMES[kind_of(hint)]


def _default_text(field: _Field) -> str | None:
    if field.default is REQUIRED:
        return None
    if field.default is None or field.default in ("", ()):
        return "unset"
    if isinstance(field.default, bool):
        return "1" if field.default else "0"
    if isinstance(field.default, tuple):
        return ",".join(field.default)
    return str(field.default)


def _bounds(rule: Rule) -> str:
    if rule.choices is not None:
        return ", ".join(rule.choices)
    if rule.minimum is not None and rule.maximum is not None:
        return f"{rule.minimum} to {rule.maximum}"
    if rule.minimum is not None:
        return f"at least {rule.minimum}"
    if rule.maximum is not None:
        return f"at most {rule.maximum}"
    return ""
