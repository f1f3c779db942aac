"""Where log lines go: through a bounded queue to stderr, and everything unhandled with them.

Owns: the root handler, the writing thread, the hooks for unhandled exceptions, and the ready line.
Does not own: the form of a line (`log_format`). Enforces: WEIR-071 (a slow reader of stderr never
holds up the process; what it makes us drop is counted and told).
"""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO

from services.runtime.log_format import JsonFormatter, TextFormatter
from services.runtime.logging import FIELDS_ATTRIBUTE, LogSettings, get_logger

QUEUED_LINES = 10_000
FLUSH_TIMEOUT_S = 2.0
READY_EVENT = "ready"

_log = get_logger(__name__)


@contextmanager
def logging_to(
    service: str, settings: LogSettings | None = None, stream: TextIO | None = None
) -> Iterator[None]:
    """Send this process's log to `stream` (stderr by default) for the length of the scope.

    Replaces the root logger's handlers and the hooks for unhandled exceptions, and puts the old
    ones back. On leaving, waits at most FLUSH_TIMEOUT_S for the lines that are still queued.
    """
    chosen = settings or LogSettings()
    out = stream or sys.stderr
    form = JsonFormatter if _wants_json(chosen, out) else TextFormatter
    formatter = form(service, with_texts=chosen.level == "debug")
    writer = LineWriter(out, QUEUED_LINES, lambda count: formatter.format(_dropped(count)))
    handler = _QueueHandler(writer)
    handler.setFormatter(formatter)
    handler.addFilter(_is_ours_or_urgent)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    root.handlers[:] = [handler]
    root.setLevel(chosen.level.upper())
    try:
        with _hooks():
            yield
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
        handler.close()


def announce_ready(service: str, address: str, **fields: object) -> None:
    """Log the one line that tells whoever started this process that it is ready, and where.

    `address` is what a client connects to, `127.0.0.1:50051` for example. Written at every level.
    """
    record = _record(logging.INFO, READY_EVENT, {"address": address, "service": service, **fields})
    logging.getLogger(record.name).handle(record)


def log_loop_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Send what a loop's tasks and callbacks raise, and nobody awaits, to the log."""
    loop.set_exception_handler(_loop_error)


class LineWriter:
    """Writes lines to a stream from a thread of its own.

    `put` never waits: when the queue is full the line is dropped and counted, and the line that
    `tell_dropped` makes of the count is written as soon as there is room again.
    """

    def __init__(self, stream: TextIO, capacity: int, tell_dropped: Callable[[int], str]) -> None:
        self._stream = stream
        self._tell_dropped = tell_dropped
        self._lines: queue.Queue[str | None] = queue.Queue(capacity)
        self._dropped = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Queue one line without its newline."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            # WEIR-071: losing a line is better than a voice that stops.
            with self._lock:
                self._dropped += 1

    def close(self, timeout_s: float) -> bool:
        """Write what is queued and end the thread; False when `timeout_s` was not enough."""
        try:
            self._lines.put(None, timeout=timeout_s)
        except queue.Full:
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)
            if self._lines.empty():
                self._report_dropped()
        self._report_dropped()

    def _report_dropped(self) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._write(self._tell_dropped(dropped))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody reads stderr any more (closed pipe or closed file): there is nowhere to tell.
            return


class _QueueHandler(logging.handlers.QueueHandler):
    """Makes the line where it is logged, since the request's fields are known only there."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__(queue=None)  # type: ignore[arg-type]  # enqueue below replaces it
        self._writer = writer

    def prepare(self, record: logging.LogRecord) -> Any:
        return self.format(record)

    def enqueue(self, record: Any) -> None:
        self._writer.put(record)

    def close(self) -> None:
        """Write what is queued, for at most FLUSH_TIMEOUT_S."""
        super().close()
        self._writer.close(FLUSH_TIMEOUT_S)


def _wants_json(settings: LogSettings, stream: TextIO) -> bool:
    return settings.format == "json" or (settings.format == "auto" and not stream.isatty())


def _is_ours_or_urgent(record: logging.LogRecord) -> bool:
    # WEIR-070: at info and below libraries tell what passes through them, headers and frames even.
    return hasattr(record, FIELDS_ATTRIBUTE) or record.levelno >= logging.WARNING


def _dropped(count: int) -> logging.LogRecord:
    return _record(logging.WARNING, "log_lines_dropped", {"count": count})


def _record(level: int, event: str, fields: dict[str, object]) -> logging.LogRecord:
    logger = logging.getLogger(__name__)
    return logger.makeRecord(
        logger.name, level, "", 0, event, (), None, extra={FIELDS_ATTRIBUTE: fields}
    )


@contextmanager
def _hooks() -> Iterator[None]:
    before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    sys.excepthook, threading.excepthook, sys.unraisablehook = (
        _uncaught,
        _uncaught_in_thread,
        _unraisable,
    )
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        sys.excepthook, threading.excepthook, sys.unraisablehook = before


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _log.error("unhandled_exception", error=error)


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "unknown"
    _log.error("unhandled_exception_in_thread", thread=name, error=args.exc_value)


def _unraisable(args: Any) -> None:
    _log.error("unraisable_exception", error=args.exc_value)


def _loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    task = context.get("task") or context.get("future")
    name = task.get_name() if isinstance(task, asyncio.Task) else None
    _log.error(
        "unhandled_exception_in_task",
        task=name,
        what=context.get("message"),
        error=context.get("exception"),
    )
