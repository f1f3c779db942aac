"""Cleanup is done whatever is cancelled around it, and no task is without an owner."""

from __future__ import annotations

import asyncio

import pytest

from services.runtime.tasks import BackgroundTasks, cancel_and_wait, finish

LONG_S = 30.0
SHORT_S = 0.02


async def test_cleanup_runs_to_its_end_when_its_task_is_cancelled() -> None:
    """WEIR-065: the cancellation waits for the cleanup and is then raised."""
    started, go_on = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def cleanup() -> None:
        started.set()
        await go_on.wait()
        done.append("cleaned")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await finish(cleanup(), timeout_s=LONG_S, what="work")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await started.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cleaned"]


async def test_a_cancellation_that_arrives_during_the_cleanup_is_not_lost() -> None:
    """WEIR-065: also when the work itself had ended well."""
    started, go_on = asyncio.Event(), asyncio.Event()

    async def cleanup() -> None:
        started.set()
        await go_on.wait()

    task = asyncio.create_task(finish(cleanup(), timeout_s=LONG_S, what="work"))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cleanup_is_time_boxed() -> None:
    """WEIR-065: what takes too long is cancelled, and the caller goes on."""
    ended = asyncio.Event()

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert not await finish(stuck(), timeout_s=SHORT_S, what="stuck")
    assert ended.is_set()


async def test_a_failing_cleanup_does_not_hide_the_error_under_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-065: the cleanup's own exception goes to the log."""

    async def broken() -> None:
        raise OSError("of the cleanup")

    async def work() -> None:
        try:
            raise ValueError("of the work")
        finally:
            assert not await finish(broken(), timeout_s=LONG_S, what="broken")

    with pytest.raises(ValueError, match="of the work"):
        await work()
    assert [record.message for record in caplog.records] == ["cleanup_failed"]


async def test_a_good_cleanup_says_so() -> None:
    """WEIR-065: True when it ended well, at once, without waiting for the limit."""

    async def good() -> None:
        return None

    async with asyncio.timeout(LONG_S / 2):
        assert await finish(good(), timeout_s=LONG_S, what="good")


async def test_cancelled_tasks_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """WEIR-066: also those that take a moment to end, and those that end with an error."""
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("slow")

    async def broken() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("while ending")

    tasks = [asyncio.create_task(slow()), asyncio.create_task(broken())]
    await asyncio.sleep(0)
    await cancel_and_wait(*tasks, timeout_s=LONG_S)
    assert ended == ["slow"]
    assert all(task.done() for task in tasks)
    assert [record.message for record in caplog.records] == ["task_failed"]
    await cancel_and_wait(timeout_s=LONG_S)


async def test_a_task_that_does_not_end_is_told_and_left(caplog: pytest.LogCaptureFixture) -> None:
    """WEIR-066: waiting is time-boxed."""
    go_on = asyncio.Event()

    async def stubborn() -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await cancel_and_wait(task, timeout_s=SHORT_S)
    assert [record.message for record in caplog.records] == ["task_does_not_end"]
    go_on.set()
    await task


async def test_background_tasks_end_with_their_owner() -> None:
    """WEIR-066: close cancels and waits; nothing can be started afterwards."""
    owner = BackgroundTasks()
    task = owner.start(asyncio.Event().wait(), name="waits")
    assert len(owner) == 1
    await owner.close(timeout_s=LONG_S)
    assert task.cancelled()
    assert len(owner) == 0
    with pytest.raises(RuntimeError, match="late"):
        owner.start(asyncio.Event().wait(), name="late")
    await owner.close(timeout_s=LONG_S)


async def test_a_background_task_that_fails_is_logged_at_once_and_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-066: nobody awaits it, so the log is where it is seen."""

    async def broken() -> None:
        raise OSError

    owner = BackgroundTasks()
    other = owner.start(asyncio.Event().wait(), name="other")
    failed = owner.start(broken(), name="broken")
    await asyncio.wait({failed})
    await asyncio.sleep(0)
    assert [record.message for record in caplog.records] == ["task_failed"]
    assert not other.done()
    await owner.close(timeout_s=LONG_S)
