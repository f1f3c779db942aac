"""Rules that hold for every test, and the fixtures that several folders use.

Owns: the search for leaked tasks and threads, and `start_process`. A test that leaves an asyncio
task or a non-daemon thread behind fails; a process that it started ends with it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterator

import pytest
import pytest_asyncio

from tests.processes import READY_TIMEOUT_S, ServiceProcess, StartProcess

ENDING_S = 0.5
"""Time that tasks and threads have to end by themselves after a test."""

_THREADS = pytest.StashKey[frozenset[threading.Thread]]()
_FAILED = pytest.StashKey[bool]()


@pytest.fixture(autouse=True)
def no_leaked_tasks(request: pytest.FixtureRequest) -> None:
    """WEIR-066: fail an async test after which a task still runs that it started.

    Set up before every other fixture of the test, so checked after all of them are torn down.
    """
    test = getattr(request.node, "obj", None)
    # Hypothesis hides the coroutine function that it calls for each example.
    test = getattr(getattr(test, "hypothesis", None), "inner_test", test)
    if inspect.iscoroutinefunction(test):
        request.getfixturevalue("_watched_tasks")


@pytest_asyncio.fixture
async def _watched_tasks() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    leaked = asyncio.all_tasks() - before - {asyncio.current_task()}
    if leaked:
        _, leaked = await asyncio.wait(leaked, timeout=ENDING_S)
    for task in leaked:
        task.cancel()
    if leaked:
        names = sorted(f"{task.get_name()}: {task.get_coro()!r}" for task in leaked)
        pytest.fail(f"{len(leaked)} tasks still run:\n" + "\n".join(names), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Remember the threads there are before the first fixture of the test."""
    item.stash[_THREADS] = frozenset(threading.enumerate())
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a test after which a non-daemon thread still runs that it started."""
    yield
    leaked = _leaked_threads(item.stash[_THREADS])
    if leaked:
        names = ", ".join(thread.name for thread in leaked)
        pytest.fail(f"threads still run: {names}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep in mind that a test failed, for fixtures that then show more."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture
def start_process(request: pytest.FixtureRequest) -> Iterator[StartProcess]:
    """Start service processes; each is ended, and shown if the test failed, when the test ends."""
    started: list[ServiceProcess] = []

    async def start(
        module: str,
        *arguments: str,
        ready_timeout_s: float | None = READY_TIMEOUT_S,
        **env: str,
    ) -> ServiceProcess:
        process = ServiceProcess(module, *arguments, env=env)
        started.append(process)
        if ready_timeout_s is not None:
            await process.ready(ready_timeout_s)
        return process

    yield start
    for process in reversed(started):
        process.close()
        if request.node.stash.get(_FAILED, False):
            print(f"--- log of {process.module} (pid {process.pid})\n{process.text()}")


def _leaked_threads(before: frozenset[threading.Thread]) -> list[threading.Thread]:
    until = time.monotonic() + ENDING_S
    leaked = [t for t in threading.enumerate() if t not in before and not t.daemon]
    for thread in leaked:
        thread.join(max(0.0, until - time.monotonic()))
    return [thread for thread in leaked if thread.is_alive()]
