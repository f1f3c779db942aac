"""Tasks that end: cleanup that is done even when cancelled, and background tasks with an owner.

Owns: shielded, time-boxed cleanup and the set of a component's background tasks. Does not own: the
task groups of sessions. Enforces: WEIR-065 (cleanup runs to its end or to its time limit, whatever
is cancelled around it), WEIR-066 (no task is left without an owner).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from services.runtime.logging import get_logger

_log = get_logger(__name__)

GIVE_UP_S = 0.5
"""Time a task has to end after it was cancelled for taking too long."""


async def finish(cleanup: Coroutine[Any, Any, object], *, timeout_s: float, what: str) -> bool:
    """Run `cleanup` to its end within `timeout_s`, even when this task is cancelled meanwhile.

    For `finally` blocks. Returns True when it ended well. A cleanup that takes too long is
    cancelled, one that raises is logged; neither hides the exception that is under way. A
    cancellation that arrived meanwhile is raised afterwards.
    """
    task = asyncio.create_task(cleanup, name=f"finish {what}")
    cancelled = await _wait(task, timeout_s)
    if not task.done():
        _log.warning("cleanup_too_slow", what=what, timeout_s=timeout_s)
        task.cancel()
        cancelled = await _wait(task, GIVE_UP_S) or cancelled
    done = task.done() and not task.cancelled()
    error = task.exception() if done else None
    if error is not None:
        _log.error("cleanup_failed", what=what, error=error)
    if cancelled is not None:
        raise cancelled
    return done and error is None


async def cancel_and_wait(*tasks: asyncio.Task[Any], timeout_s: float) -> None:
    """Cancel tasks and wait until they have ended, at most `timeout_s`. Their results are dropped.

    Exceptions other than the cancellation go to the log, as does a task that does not end in time.
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=timeout_s)
    for task in tasks:
        if not task.done():
            _log.warning("task_does_not_end", task=task.get_name(), timeout_s=timeout_s)
        elif not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task_failed", task=task.get_name(), error=error)


class BackgroundTasks:
    """Owns tasks that run beside a component; `close` ends them.

    Use a TaskGroup where a scope fits; this is for components with a start and a close. A task that
    raises is logged at once and leaves the others alone.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, object], *, name: str) -> asyncio.Task[Any]:
        """Start `work` as a task. Raises RuntimeError after `close`."""
        if self._closed:
            work.close()
            raise RuntimeError(f"task {name} started after close")
        task = asyncio.create_task(work, name=name)
        # WEIR-066: the loop itself keeps only weak references.
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self, *, timeout_s: float) -> None:
        """Cancel every task and wait for it, at most `timeout_s`. May be called again."""
        self._closed = True
        await cancel_and_wait(*self._tasks, timeout_s=timeout_s)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not self._closed and not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task_failed", task=task.get_name(), error=error)


async def _wait(task: asyncio.Task[Any], timeout_s: float) -> asyncio.CancelledError | None:
    """Wait for `task`, holding back cancellations of the caller; return the last one."""
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    held: asyncio.CancelledError | None = None
    while not task.done() and (left := until - loop.time()) > 0:
        try:
            # WEIR-065: asyncio.wait leaves the task alone when the waiter is cancelled.
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as error:
            held = error
    return held
