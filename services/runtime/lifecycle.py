"""From start to exit: signals, readiness, drain and its deadline, for any kind of process.

Owns: the order start, ready, drain, close; signal handling; the exit status. Does not own: what a
process does in each step (`server` has it for gRPC, the edge for WebSocket). Enforces: WEIR-080 (a
first signal drains up to a deadline, a second one ends at once), WEIR-065 (closing is time-boxed).
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from services.runtime.log_output import announce_ready, log_loop_errors, logging_to
from services.runtime.logging import LogSettings, get_logger
from services.runtime.settings import SettingsError, read_settings, setting
from services.runtime.tasks import cancel_and_wait, finish

SIGNALS = (signal.SIGTERM, signal.SIGINT)
EXIT_OK = 0
EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_GRACE_S = 5.0
"""Time that threads have to end after everything is closed, before the process exits anyway."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """How long a process may take to end."""

    deadline_s: float = setting(
        "*_DRAIN_DEADLINE_S",
        30.0,
        "Time that running work has to finish after the first SIGTERM or SIGINT; what still runs "
        "then is cancelled.",
        unit="s",
        minimum=0.0,
    )
    close_timeout_s: float = setting(
        "*_CLOSE_TIMEOUT_S",
        5.0,
        "Time that closing may take after that. The grace period of a container is longer than "
        "both together.",
        unit="s",
        minimum=0.1,
    )


class Process(Protocol):
    """The steps of a process. Each is called at most once, `close` always."""

    async def start(self) -> str:
        """Do all that is needed to serve; return the address clients dial. May be cancelled."""
        ...

    async def drain(self) -> None:
        """Take no new work; return when running work has ended. May be cancelled."""
        ...

    async def close(self) -> None:
        """Cancel what still runs and free everything, also after a start that failed."""
        ...


class Shutdown:
    """The wish to end: once for a drain, twice for now. Signals ask for it, components may too."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.forced = asyncio.Event()
        self.failed = False

    def request(self) -> None:
        """Ask for a drain; when that is asked for already, for an end at once."""
        if self.requested.is_set():
            self.forced.set()
        self.requested.set()

    def fail(self) -> None:
        """Ask for a drain because something that must run has stopped; the exit status tells."""
        self.failed = True
        self.requested.set()


class Logs(Protocol):
    """Settings of a process, as far as they are needed to log."""

    @property
    def log(self) -> LogSettings:
        """How this process logs."""
        ...


Settings = TypeVar("Settings", bound=Logs)


def run_main(
    service: str, record: type[Settings], body: Callable[[Settings], Awaitable[int]]
) -> int:
    """Run a process from its environment; return its exit status. For `__main__` only.

    Reads `record` from the environment (EXIT_SETTINGS and one log line for each problem when it is
    wrong), sets logging up, and runs `body`, which usually ends in `run_process`.
    """
    try:
        settings = read_settings(record, os.environ)
    except SettingsError as error:
        with logging_to(service):
            for problem in error.problems:
                _log.error("setting_refused", problem=problem)
        return EXIT_SETTINGS
    with logging_to(service, settings.log):
        try:
            return asyncio.run(_body(service, body, settings))
        except Exception as error:
            _log.error("process_failed", error=error)
            return EXIT_FAILED


async def run_process(
    service: str,
    process: Process,
    settings: DrainSettings | None = None,
    *,
    shutdown: Shutdown | None = None,
) -> int:
    """Start `process`, announce it, wait for a signal, drain and close it; return the exit status.

    `shutdown` is for components that must be able to end the process, and for tests.
    """
    limits = settings or DrainSettings()
    wish = shutdown or Shutdown()
    with _signals(wish):
        try:
            await _serve(service, process, limits, wish)
        except Exception as error:
            _log.error("process_failed", error=error)
            wish.fail()
        finally:
            await finish(process.close(), timeout_s=limits.close_timeout_s, what=f"close {service}")
    _log.info("stopped", failed=wish.failed)
    return EXIT_FAILED if wish.failed else EXIT_OK


async def _serve(service: str, process: Process, limits: DrainSettings, wish: Shutdown) -> None:
    start = asyncio.create_task(process.start(), name="start")
    if not await _first(start, wish.requested, None, limits):
        _log.info("stopped_before_ready")
        return
    announce_ready(service, start.result())
    await wish.requested.wait()
    _log.info("draining", deadline_s=limits.deadline_s)
    drain = asyncio.create_task(process.drain(), name="drain")
    # WEIR-080: whatever comes first ends the drain: the work, the deadline or a second signal.
    if not await _first(drain, wish.forced, limits.deadline_s, limits):
        _log.warning("drain_cut_short", forced=wish.forced.is_set())


async def _first(
    task: asyncio.Task[object] | asyncio.Task[str] | asyncio.Task[None],
    event: asyncio.Event,
    timeout_s: float | None,
    limits: DrainSettings,
) -> bool:
    """True when `task` ended well before `event` and the timeout; otherwise it is cancelled.

    Raises what the task raised.
    """
    waiter = asyncio.create_task(event.wait(), name="wait for shutdown")
    try:
        await asyncio.wait({task, waiter}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        ends = [waiter] if task.done() else [waiter, task]
        await finish(
            cancel_and_wait(*ends, timeout_s=limits.close_timeout_s),
            timeout_s=limits.close_timeout_s,
            what=task.get_name(),
        )


async def _body(
    service: str, body: Callable[[Settings], Awaitable[int]], settings: Settings
) -> int:
    log_loop_errors(asyncio.get_running_loop())
    status = await body(settings)
    # What is left now is joining threads, which a blocked one could hold up for ever.
    timer = threading.Timer(EXIT_GRACE_S, _exit_anyway, args=(service, settings.log, status))
    timer.daemon = True
    timer.start()
    return status


def _exit_anyway(service: str, settings: LogSettings, status: int) -> None:
    # The main thread has left its own logging scope and waits for threads by now.
    with logging_to(service, settings):
        _log.error("threads_do_not_end", threads=[thread.name for thread in threading.enumerate()])
    os._exit(status or EXIT_FAILED)


@contextmanager
def _signals(wish: Shutdown) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, wish.request)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
