"""The order of the steps, whatever fails."""

from __future__ import annotations

import asyncio

import pytest

from services.runtime.lifecycle import (
    EXIT_FAILED,
    EXIT_OK,
    DrainSettings,
    Shutdown,
    run_process,
)

LIMITS = DrainSettings(deadline_s=3600.0, close_timeout_s=3600.0)
PATIENCE_S = 10.0


class Recorder:
    """A process that records its steps and does in each what it is told."""

    def __init__(self, **actions: object) -> None:
        self.steps: list[str] = []
        self.at: dict[str, asyncio.Event] = {
            step: asyncio.Event() for step in ("start", "drain", "close")
        }
        self._actions = actions

    async def start(self) -> str:
        await self._step("start")
        return "127.0.0.1:1"

    async def drain(self) -> None:
        await self._step("drain")

    async def close(self) -> None:
        await self._step("close")

    async def _step(self, name: str) -> None:
        self.steps.append(name)
        self.at[name].set()
        action = self._actions.get(name)
        if isinstance(action, Exception):
            raise action
        if action == "hang":
            try:
                await asyncio.Event().wait()
            finally:
                self.steps.append(f"{name} cancelled")


async def run(
    process: Recorder, shutdown: Shutdown, limits: DrainSettings = LIMITS
) -> asyncio.Task[int]:
    return asyncio.create_task(run_process("sample", process, limits, shutdown=shutdown))


async def test_steps_come_in_order() -> None:
    """WEIR-080: start, drain, close."""
    process, shutdown = Recorder(), Shutdown()
    running = await run(process, shutdown)
    await process.at["start"].wait()
    assert process.steps == ["start"]
    shutdown.request()
    assert await asyncio.wait_for(running, PATIENCE_S) == EXIT_OK
    assert process.steps == ["start", "drain", "close"]


@pytest.mark.parametrize(
    ("failing", "steps"),
    [
        ("start", ["start", "close"]),
        ("drain", ["start", "drain", "close"]),
        ("close", ["start", "drain", "close"]),
    ],
)
async def test_a_failing_step_never_leaves_out_the_close(failing: str, steps: list[str]) -> None:
    """WEIR-080: the exit status tells, except of a close that failed, which only the log does."""
    process, shutdown = Recorder(**{failing: OSError("x")}), Shutdown()
    running = await run(process, shutdown)
    await process.at["start"].wait()
    shutdown.request()
    status = EXIT_OK if failing == "close" else EXIT_FAILED
    assert await asyncio.wait_for(running, PATIENCE_S) == status
    assert process.steps == steps


async def test_a_second_request_ends_the_drain() -> None:
    """WEIR-080: the drain is cancelled and the process closed."""
    process, shutdown = Recorder(drain="hang"), Shutdown()
    running = await run(process, shutdown)
    await process.at["start"].wait()
    shutdown.request()
    await process.at["drain"].wait()
    shutdown.request()
    assert await asyncio.wait_for(running, PATIENCE_S) == EXIT_OK
    assert process.steps == ["start", "drain", "drain cancelled", "close"]


async def test_the_deadline_ends_the_drain() -> None:
    """WEIR-080: also without a second request."""
    process, shutdown = Recorder(drain="hang"), Shutdown()
    running = await run(process, shutdown, DrainSettings(deadline_s=0.01, close_timeout_s=3600.0))
    shutdown.request()
    assert await asyncio.wait_for(running, PATIENCE_S) == EXIT_OK


async def test_a_request_during_the_start_cancels_it() -> None:
    """WEIR-080: nothing is drained that never served."""
    process, shutdown = Recorder(start="hang"), Shutdown()
    running = await run(process, shutdown)
    await process.at["start"].wait()
    shutdown.request()
    assert await asyncio.wait_for(running, PATIENCE_S) == EXIT_OK
    assert process.steps == ["start", "start cancelled", "close"]


async def test_a_component_can_end_the_process_with_a_failure() -> None:
    """WEIR-080: it drains as usual, and the exit status tells."""
    process, shutdown = Recorder(), Shutdown()
    running = await run(process, shutdown)
    await process.at["start"].wait()
    shutdown.fail()
    assert await asyncio.wait_for(running, PATIENCE_S) == EXIT_FAILED
    assert process.steps == ["start", "drain", "close"]


async def test_a_close_that_hangs_is_cancelled() -> None:
    """WEIR-065: closing is time-boxed."""
    process, shutdown = Recorder(close="hang"), Shutdown()
    running = await run(process, shutdown, DrainSettings(deadline_s=3600.0, close_timeout_s=0.01))
    shutdown.request()
    assert await asyncio.wait_for(running, PATIENCE_S) == EXIT_OK
    assert process.steps[-1] == "close cancelled"


async def test_a_cancelled_run_still_closes() -> None:
    """WEIR-065: cleanup is shielded."""
    process, shutdown = Recorder(), Shutdown()
    running = await run(process, shutdown)
    await process.at["start"].wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert process.steps == ["start", "close"]
