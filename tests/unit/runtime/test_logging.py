"""What stands in a log, what never does, and that logging holds nobody up."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contracts.errors import Reason, WeirError, failure
from services.runtime import log_output
from services.runtime.log_format import MAX_CAUSES, MAX_TEXT_CHARACTERS
from services.runtime.log_output import LineWriter, announce_ready, log_loop_errors, logging_to
from services.runtime.logging import LogSettings, get_logger, log_context, redacted

SECRET = "the words of a user"
log = get_logger("tests.logging")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Lines:
    """What one scope of logging wrote; complete when the scope is left."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def json(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def one(self) -> dict[str, Any]:
        (line,) = self.json
        return line


@contextmanager
def logged(
    level: str = "info", form: str = "json", stream: io.StringIO | None = None
) -> Iterator[Lines]:
    out = stream or io.StringIO()
    with logging_to("sample", LogSettings(level, form), out):
        yield Lines(out)


def raised(error: BaseException) -> BaseException:
    """Return `error` as it looks when it is caught."""
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_line_has_the_fields_that_every_line_has() -> None:
    """WEIR-070: time, level, service, event, logger, then the event's own fields."""
    with logged() as lines:
        log.info("segment_spoken", chunks=3, seconds=0.5, voice=None, ok=True)
    line = lines.one
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "service": "sample",
        "event": "segment_spoken",
        "logger": "tests.logging",
        "chunks": 3,
        "seconds": 0.5,
        "voice": None,
        "ok": True,
    }


async def test_the_fields_of_a_request_are_on_its_lines_and_on_no_others() -> None:
    """WEIR-070: ids follow the task, also into tasks it starts, and end with the scope."""
    both = asyncio.Barrier(2)

    async def speak(session: str) -> None:
        with log_context(session_id=session), log_context(request_id=f"{session}-1"):
            await both.wait()
            await asyncio.create_task(inner())
        log.info("outside")

    async def inner() -> None:
        log.info("inside")

    with logged() as lines:
        async with asyncio.TaskGroup() as group:
            group.create_task(speak("a"))
            group.create_task(speak("b"))
    ids = [(line["event"], line.get("session_id"), line.get("request_id")) for line in lines.json]
    assert sorted(ids, key=str) == [
        ("inside", "a", "a-1"),
        ("inside", "b", "b-1"),
        ("outside", None, None),
        ("outside", None, None),
    ]


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["a", "b", "c", "d"]),
        ("info", ["b", "c", "d"]),
        ("warning", ["c", "d"]),
        ("error", ["d"]),
    ],
)
def test_the_level_is_the_least_that_is_logged(level: str, events: list[str]) -> None:
    """WEIR-070: four levels."""
    with logged(level) as lines:
        log.debug("a")
        log.info("b")
        log.warning("c")
        log.error("d")
    assert [line["event"] for line in lines.json] == events


def test_redacted_text_shows_length_and_a_digest_only() -> None:
    """WEIR-070: the same text is recognised within a process, no text can be read back."""
    with logged() as lines:
        log.info("text_received", text=redacted(SECRET), again=redacted(SECRET), other=redacted(""))
    line = lines.one
    assert line["text"] == line["again"] != line["other"]
    assert line["text"]["characters"] == len(SECRET)
    assert SECRET not in lines.text
    assert SECRET not in f"{redacted(SECRET)} {redacted(SECRET)!r}"
    guessed = hashlib.blake2b(SECRET.encode(), digest_size=4).hexdigest()
    assert redacted(SECRET).digest != guessed


class Talkative:
    def __repr__(self) -> str:
        return SECRET


def chained() -> BaseException:
    inner = raised(ValueError(SECRET))
    middle = KeyError(SECRET)
    middle.__cause__ = inner
    return raised(ExceptionGroup(SECRET, [middle, OSError(SECRET)]))


@pytest.mark.parametrize(
    "write",
    [
        lambda: log.error("call_failed", error=raised(ValueError(SECRET))),
        lambda: log.error("call_failed", error=chained()),
        lambda: log.info("odd", value=Talkative(), many=[Talkative()], named={"a": Talkative()}),
        lambda: logging.getLogger("library").error("bad input %r", SECRET),
        lambda: logging.getLogger("library").error("oops", exc_info=raised(ValueError(SECRET))),
    ],
    ids=["exception", "chained exceptions", "unknown object", "library arguments", "library error"],
)
def test_text_that_may_be_a_users_is_not_logged_at_info(write: Callable[[], None]) -> None:
    """WEIR-070: exceptions, objects and libraries' arguments may hold what a user sent."""
    with logged() as lines:
        write()
    assert lines.one["service"] == "sample"
    assert SECRET not in lines.text


def test_an_exception_is_logged_with_type_places_and_causes() -> None:
    """WEIR-070: enough to find the mistake without its text."""
    with logged() as lines:
        log.error("call_failed", error=chained())
    error = lines.one["error"]
    assert error["type"] == "ExceptionGroup"
    assert [inner["type"] for inner in error["errors"]] == ["KeyError", "OSError"]
    assert error["errors"][0]["cause"]["type"] == "ValueError"
    assert any(frame.endswith(" raised") and __file__ in frame for frame in error["frames"])


def test_the_text_of_an_exception_is_logged_at_debug_and_ours_always() -> None:
    """WEIR-070: a WeirError's text is a fixed sentence; others only when an operator asks."""
    ours = WeirError(failure(Reason.OVERLOADED, "Every place is taken."))
    with logged() as lines:
        log.error("x", error=raised(ours))
    assert lines.one["error"]["text"] == "OVERLOADED: Every place is taken."
    with logged("debug") as lines:
        log.error("x", error=raised(ValueError("some text")))
    assert lines.one["error"]["text"] == "some text"


def test_a_chain_of_causes_is_cut() -> None:
    """WEIR-071: a line has a bounded size."""
    error: BaseException = ValueError("0")
    for index in range(50):
        error = raised(error)
        follower = ValueError(str(index))
        follower.__cause__ = error
        error = follower
    with logged() as lines:
        log.error("x", error=error)
    assert lines.text.count('"type":"ValueError"') == MAX_CAUSES + 1


@pytest.mark.parametrize(
    "value",
    ["line\nbreak", 'quote"', "\ud800 half a pair", "\x00\x1b[31m", "中文 🎵", "x" * 10_000],
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_any_text_makes_one_readable_line(value: str, form: str) -> None:
    """WEIR-070: no value can forge a second line or break an encoder; long ones are cut."""
    with logged(form=form) as lines:
        log.info("x", value=value)
    assert lines.text.count("\n") == 1
    assert len(lines.text) < MAX_TEXT_CHARACTERS + 300
    assert "\x1b" not in lines.text
    lines.text.encode("utf-8")


@pytest.mark.parametrize(
    ("form", "stream", "is_json"),
    [
        ("auto", io.StringIO, True),
        ("auto", Terminal, False),
        ("json", Terminal, True),
        ("text", io.StringIO, False),
    ],
)
def test_people_get_text_and_machines_get_json(
    form: str, stream: type[io.StringIO], is_json: bool
) -> None:
    """WEIR-070: auto looks whether stderr is a terminal; the setting decides otherwise."""
    with logged(form=form, stream=stream()) as lines:
        log.info("spoken", chunks=3, voice="two words")
    assert lines.text.startswith("{") is is_json
    if not is_json:
        assert 'info    sample spoken chunks=3 voice="two words"' in lines.text


@pytest.mark.parametrize("level", ["debug", "error"])
def test_the_ready_line_is_written_at_every_level(level: str) -> None:
    """WEIR-080: whoever started the process waits for this line."""
    with logged(level) as lines:
        announce_ready("sample", "127.0.0.1:4711", model="m")
    line = lines.one
    assert (line["event"], line["service"]) == ("ready", "sample")
    assert (line["address"], line["model"]) == ("127.0.0.1:4711", "m")


async def test_what_nobody_catches_goes_to_the_log() -> None:
    """WEIR-070: exceptions of tasks, threads, the main thread and destructors; warnings too."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    with logged() as lines:
        log_loop_errors(loop)
        loop.call_exception_handler({"message": "m", "exception": raised(ValueError(SECRET))})
        loop.set_exception_handler(before)

        def fail() -> None:
            raise ValueError(SECRET)

        thread = threading.Thread(target=fail, name="worker")
        thread.start()
        thread.join()
        sys.excepthook(ValueError, ValueError(SECRET), None)
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("soon gone", DeprecationWarning, stacklevel=1)
    assert [line["event"] for line in lines.json] == [
        "unhandled_exception_in_task",
        "unhandled_exception_in_thread",
        "unhandled_exception",
        "message",
    ]
    assert SECRET not in lines.text


@pytest.mark.parametrize("level", ["debug", "info"])
def test_a_library_is_heard_from_warning_on(level: str) -> None:
    """WEIR-070: below that libraries tell headers and frames, whatever the level is."""
    library = logging.getLogger("library")
    with logged(level) as lines:
        library.debug("frame: %s", SECRET)
        library.info("frame: %s", SECRET)
        library.warning("connection lost")
    assert (lines.one["event"], lines.one["text"]) == ("message", "connection lost")


def test_dropped_lines_are_told_in_the_form_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-071: the count is a line like the others."""
    monkeypatch.setattr(log_output, "QUEUED_LINES", 1)
    stream = Blocked()
    with logged(stream=stream) as lines:
        log.info("first")
        assert stream.entered.wait(10)
        for _ in range(4):
            log.info("more")
        stream.go_on.set()
    last = lines.json[-1]
    assert (last["event"], last["level"], last["count"]) == ("log_lines_dropped", "warning", 3)


def test_leaving_the_scope_puts_everything_back() -> None:
    """WEIR-070: hooks and handlers belong to the scope."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook, threading.excepthook)
    with logged():
        assert root.handlers != before[0]
    assert (root.handlers[:], root.level, sys.excepthook, threading.excepthook) == before
    assert not [thread for thread in threading.enumerate() if thread.name == "log-writer"]


class Blocked(io.StringIO):
    """A stream whose reader has stopped, until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def write(self, text: str) -> int:
        self.entered.set()
        assert self.go_on.wait(10)
        return super().write(text)


def test_a_blocked_stderr_holds_nobody_up_and_drops_are_counted() -> None:
    """WEIR-071: put returns at once; what did not fit is told as a count."""
    stream = Blocked()
    writer = LineWriter(stream, 3, "{} lines dropped".format)
    writer.put("first")
    assert stream.entered.wait(10)
    for index in range(10):
        writer.put(f"line {index}")
    stream.go_on.set()
    assert writer.close(10)
    lines = stream.getvalue().splitlines()
    assert lines[:4] == ["first", "line 0", "line 1", "line 2"]
    assert lines[4:] == ["7 lines dropped"]


def test_closing_does_not_wait_for_a_blocked_stderr_for_ever() -> None:
    """WEIR-071: the exit is time-boxed."""
    stream = Blocked()
    writer = LineWriter(stream, 1, str)
    writer.put("first")
    assert stream.entered.wait(10)
    assert not writer.close(0.01)
    stream.go_on.set()
    assert writer.close(10)


def test_a_closed_stderr_is_no_error() -> None:
    """WEIR-071: a parent that goes away must not end a process that drains."""
    stream = io.StringIO()
    writer = LineWriter(stream, 10, str)
    stream.close()
    writer.put("nobody reads this")
    assert writer.close(10)
