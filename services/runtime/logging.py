"""What a module logs with: events with fields, and nothing of what users say.

Owns: the event logger, the fields of the running request, redaction, the log settings. Does not
own: the form of a line (`log_format`) or where lines go (`log_output`). Enforces: WEIR-070 (no user
text in a log).
"""

from __future__ import annotations

import contextvars
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from services.runtime.settings import setting

FIELDS_ATTRIBUTE = "weir_fields"
"""Attribute of a log record that holds the event's fields."""

_SALT = os.urandom(16)
_context: contextvars.ContextVar[Mapping[str, str] | None] = contextvars.ContextVar(
    "weir_log_context", default=None
)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged and how."""

    level: str = setting(
        "*_LOG_LEVEL",
        "info",
        "Least level that is logged. At debug the texts of exceptions are logged too, which may "
        "hold what users sent.",
        choices=("debug", "info", "warning", "error"),
    )
    format: str = setting(
        "*_LOG_FORMAT",
        "auto",
        "Form of a line: one JSON object, text for people, or auto: text on a terminal, else JSON.",
        choices=("auto", "json", "text"),
    )


@dataclass(frozen=True, slots=True)
class Redacted:
    """Stands for a text in a log: its length in code points, and a digest that is the same for the
    same text within one process only."""

    characters: int
    digest: str

    def __str__(self) -> str:
        return f"<{self.characters} characters, {self.digest}>"


def redacted(text: str) -> Redacted:
    """Return what may be logged about a text that a user sent."""
    # WEIR-070: keyed, so a digest in a log cannot be compared with guesses.
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_SALT, digest_size=4)
    return Redacted(len(text), digest.hexdigest())


@contextmanager
def log_context(**fields: str) -> Iterator[None]:
    """Add fields (request_id, session_id) to every line logged within, tasks started there too."""
    token = _context.set({**context_fields(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def context_fields() -> Mapping[str, str]:
    """Return the fields of the running request."""
    return _context.get() or {}


class EventLogger:
    """Logs events: a name in snake_case and fields.

    A field's value is a number, a short safe text, `redacted(text)`, a list or dict of these, or an
    exception, whose type and places are logged and whose text is only at debug. Never a user's
    text. The names time, level, service, event and logger are taken. Calls never wait.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        """Log at debug."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log at info."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log at warning."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log at error."""
        self._log(logging.ERROR, event, fields)

    def _log(self, level: int, event: str, fields: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={FIELDS_ATTRIBUTE: fields})


def get_logger(name: str) -> EventLogger:
    """Return the logger of a module: `get_logger(__name__)`."""
    return EventLogger(logging.getLogger(name))
