"""How a log record becomes one line.

Owns: the JSON and the text form, the fields that every line has, bounds of what a line holds, and
what of an exception may be written. Does not own: where lines go (`log_output`). Enforces: WEIR-070
(no user text in a log: the text of an exception only at debug).
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from contracts.errors import WeirError
from services.runtime.logging import FIELDS_ATTRIBUTE, Redacted, context_fields

MAX_TEXT_CHARACTERS = 2000
MAX_FRAMES = 25
MAX_CAUSES = 5
MAX_ITEMS = 50


class LineFormatter(logging.Formatter):
    """Base of both forms: collects the fields of a record.

    `with_texts` True writes the texts of exceptions as well, which may hold what users sent.
    """

    def __init__(self, service: str, *, with_texts: bool) -> None:
        super().__init__()
        self._service = service
        self._with_texts = with_texts

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the line's fields as plain JSON values, the fixed ones first."""
        own = getattr(record, FIELDS_ATTRIBUTE, None)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "event": record.msg if own is not None else "message",
            "logger": record.name,
        }
        for name, value in context_fields().items():
            line.setdefault(name, self._plain(value))
        if own is None:
            # A library's line: its text is its own, its arguments may be anybody's.
            line["text"] = _cut(record.getMessage() if self._with_texts else str(record.msg))
        for name, value in (own or {}).items():
            line.setdefault(name, self._plain(value))
        if record.exc_info and record.exc_info[1] is not None:
            line.setdefault("error", describe_exception(record.exc_info[1], self._with_texts))
        return line

    def _plain(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return _cut(str(value))
        if isinstance(value, Redacted):
            return {"characters": value.characters, "digest": value.digest}
        if isinstance(value, BaseException):
            return describe_exception(value, self._with_texts)
        if depth < 2 and isinstance(value, dict):
            items = list(value.items())[:MAX_ITEMS]
            return {str(key): self._plain(item, depth + 1) for key, item in items}
        if depth < 2 and isinstance(value, list | tuple | set | frozenset):
            return [self._plain(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
        # WEIR-070: the form an unknown object gives itself may show a user's text.
        return f"<{type(value).__name__}>"


class JsonFormatter(LineFormatter):
    """One JSON object for each line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its newline."""
        return json.dumps(self.fields_of(record), ensure_ascii=False, separators=(",", ":"))


class TextFormatter(LineFormatter):
    """One line for people: time, level, event, then `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its newline; line breaks within values are escaped."""
        line = self.fields_of(record)
        clock = str(line.pop("time"))[11:23]
        head = f"{clock} {line.pop('level'):<7} {line.pop('service')} {line.pop('event')}"
        line.pop("logger")
        rest = " ".join(f"{name}={_text_value(value)}" for name, value in line.items())
        return f"{head} {rest}".rstrip()


def describe_exception(
    error: BaseException, with_text: bool, *, causes: int = MAX_CAUSES
) -> dict[str, Any]:
    """Return type, places and causes of `error`; its text only when asked for, or when it is ours.

    The text of a WeirError is a fixed sentence; that of any other exception may hold user text.
    """
    described: dict[str, Any] = {"type": type(error).__qualname__}
    if with_text or isinstance(error, WeirError):
        described["text"] = _cut(str(error))
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    described["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    if causes <= 0:
        return described
    if isinstance(error, BaseExceptionGroup):
        described["errors"] = [
            describe_exception(inner, with_text, causes=causes - 1)
            for inner in error.exceptions[:MAX_CAUSES]
        ]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        described["cause"] = describe_exception(cause, with_text, causes=causes - 1)
    return described


def _cut(text: str) -> str:
    """Return `text` as something any encoder takes, at most MAX_TEXT_CHARACTERS long."""
    kept = text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}…"
    return kept.encode("utf-8", "backslashreplace").decode("utf-8")


def _text_value(value: Any) -> str:
    if isinstance(value, str) and value and not any(c.isspace() or c in '"=' for c in value):
        return value if value.isprintable() else json.dumps(value)
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or not value.isprintable())
