"""One generation, from its slot to the moment nothing holds it any more.

Owns: which thread may do what to a generation, and how it ends: completed, stopped, failed or
cancelled. Does not own: the threads themselves (`services.video.engine` has them), what is sent
(`outbox`), when the next chunk is due (`gate`), the prompt (`interactions`). Enforces: WEIR-234
(the next chunk is denoised while the one before is coded, one more waits between the two at most),
WEIR-235 (a cancelled generation begins no further denoising step, and its slot is free when, and
only when, nothing of it is at work), WEIR-236 (a fault ends the generation it is in and no other).

Fields are guarded by `Turns.changed`, held for a few instructions by whoever has something to say.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from contracts.errors import Failure
from contracts.generation import Accepted, Outcome
from services.runtime.logging import get_logger
from services.video.adapters.base import Generation
from services.video.admission import Slot
from services.video.ending import INTERNAL, Ending, LastWords
from services.video.gate import ChunkPlace, Gate
from services.video.interactions import Interactions
from services.video.outbox import Outbox
from services.video.rendering import Rendering
from services.video.replica import Replica
from services.video.signs import Signs
from services.video.timeline import Boundary

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Held:
    """Something of the model's own, which may be None or false itself."""

    value: Any


class Run:
    """One generation. Made on the loop; a method without a named thread is for the loop."""

    def __init__(self, replica: Replica, slot: Slot, gate: Gate, outbox: Outbox) -> None:
        self._replica = replica
        self._slot = slot
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._signs = Signs(outbox)
        self._begun = replica.clock()
        self._interactions: Interactions[Any] | None = None
        self._rendering: Rendering | None = None
        self._state: _Held | None = None
        self._first_turn: Callable[[], None] | None = None
        self._open = False
        self._at_work = False
        self._handed = False
        self._jobs: set[Future[None]] = set()
        self._ending: Ending | None = None
        self._failure: Failure | None = None
        self._unrenderable = False
        self._finish: LastWords = LastWords.NOT_YET
        self._releasing = False
        self._cancelled_at: float | None = None
        self.outbox = outbox
        """What it has to say."""
        self.left = asyncio.Event()
        """Set when nothing of it is at work any more and its slot is free."""
        replica.turns.join(self)

    async def prepare(self, make: Callable[[], Rendering]) -> Rendering:
        """Make what renders, on the encoding thread. Raises what `make` raises."""
        made: Future[Rendering] = _running()

        def work() -> None:
            try:
                self._rendering = make()
            except Exception as error:
                made.set_exception(error)
            else:
                made.set_result(self._rendering)

        with self._replica.turns.changed:
            self._submit(work)
        return await asyncio.wrap_future(made)

    async def start(self, generation: Generation, prompt: Any) -> None:
        """Start the model, on the generation thread. Raises what the adapter raises."""
        started: Future[None] = _running()

        def work() -> None:
            try:
                self._state = _Held(self._replica.adapter.start(generation, prompt))
            except Exception as error:
                self._leave_turn()
                started.set_exception(error)
            else:
                self._leave_turn()
                started.set_result(None)

        with self._replica.turns.changed:
            self._first_turn = work
            self._replica.turns.changed.notify_all()
        await asyncio.wrap_future(started)

    def open(self, accepted: Accepted, interactions: Interactions[Any]) -> None:
        """Say that the generation is accepted, and let it begin."""
        self._interactions = interactions
        self.outbox.post(accepted)
        with self._replica.turns.changed:
            self._open = True
            self._settle()
            self._look()

    @property
    def interactions(self) -> Interactions[Any]:
        """The interactions of an open run."""
        assert self._interactions is not None
        return self._interactions

    def grant(self, chunks: int) -> None:
        """Make room for further chunks."""
        with self._replica.turns.changed:
            self._gate.grant(chunks)
            self._look()

    def report(self, position_s: float) -> None:
        """Note how far the viewer has come."""
        with self._replica.turns.changed:
            self._gate.report(position_s)
            self._look()

    def pause(self) -> None:
        """Stand still at the next boundary."""
        with self._replica.turns.changed:
            if self._ending is None:
                self._gate.paused = True
                self._signs.pause()
                self._look()

    def resume(self) -> None:
        """Go on."""
        with self._replica.turns.changed:
            if self._ending is None:
                self._gate.paused = False
                self._signs.resume()
                self._look()

    def sent(self) -> None:
        """A chunk has been handed to the network, so there is room for another."""
        with self._replica.turns.changed:
            self._look()

    def stop(self) -> None:
        """Deliver the chunk in progress, then end."""
        self.interactions.take_no_more()
        with self._replica.turns.changed:
            if self._ending is None:
                self._ending = Ending.STOPPED
                self._settle()

    def fail(self, cause: Failure) -> None:
        """Any thread: end without the chunk in progress; what was denoised before is delivered."""
        with self._replica.turns.changed:
            too_late = self._finish in (LastWords.BEGUN, LastWords.DONE)
            if too_late or self._ending is Ending.CANCELLED:
                return
            self._ending = Ending.FAILED
            self._failure = self._failure or cause
            self._settle()

    def cancel(self) -> None:
        """End now and tell nobody. Any number of times, nothing after the end."""
        with self._replica.turns.changed:
            if self._releasing or self._ending is Ending.CANCELLED:
                return
            if self._open:
                self._cancelled_at = self._replica.clock()
            self._ending = Ending.CANCELLED
            # WEIR-235: what waits behind others is dropped, so only what is at work is waited for.
            self._first_turn = None
            for job in tuple(self._jobs):
                job.cancel()
            self._settle()
        self.outbox.close()
        if self._interactions is not None:
            self._interactions.abandon()

    def claim(self, now: float) -> Callable[[], None] | None:
        """Generation thread, lock held: see `turns.Member`."""
        if self._ending is Ending.CANCELLED:
            return None
        if self._first_turn is not None:
            work, self._first_turn = self._first_turn, None
        elif not self._open or self._ending is not None or self._handed:
            return None  # WEIR-234: one denoised chunk waits, no second one is begun.
        elif self.outbox.chunks >= self._replica.unsent_chunks:
            return None
        elif self._gate.blocked(now) is not None:
            self._stand_still(now)
            return None
        else:
            work = partial(self._generate, self._gate.begin_chunk())
        self._at_work = True
        return partial(self._context.copy().run, work)

    def wakes_at(self, now: float) -> float | None:
        """Generation thread, lock held: see `turns.Member`."""
        return self._gate.opens_at(now) if self._open and self._ending is None else None

    def _generate(self, place: ChunkPlace) -> None:
        """Generation thread: make one chunk and hand it over."""
        replica, begun, steps = self._replica, self._replica.clock(), 0

        def should_stop() -> bool:
            nonlocal steps
            steps += 1
            with replica.turns.changed:
                self._signs.step(place.index, steps, replica.clock())
                return self._ending in (Ending.CANCELLED, Ending.FAILED)

        latents: _Held | None = None
        boundary: Boundary[Any] | None = None
        try:
            boundary = self.interactions.next_boundary()
            assert self._state is not None
            made = replica.adapter.next_chunk(self._state.value, boundary.value, should_stop)
            latents = None if made is None else _Held(made)
            if made is None and self._ending not in (Ending.CANCELLED, Ending.FAILED):
                raise RuntimeError("the model gave no chunk although nobody asked it to stop")
        except Exception as error:
            _log.error("adapter_failed", chunk=place.index, error=error)
            self.fail(INTERNAL)  # WEIR-236
        seconds = replica.clock() - begun
        with replica.turns.changed:
            kept = self._ending in (None, Ending.STOPPED)
            if latents is not None and boundary is not None and kept:
                self._handed = True
                self._submit(partial(self._render, place, boundary, latents, seconds))
                if not self._gate.next_frames:
                    self._ending = Ending.COMPLETED
            else:
                replica.metrics.wasted_s.inc(seconds)
        self._leave_turn()

    def _render(
        self, place: ChunkPlace, boundary: Boundary[Any], latents: _Held, seconds: float
    ) -> None:
        """Encoding thread: make the payload of a chunk and post it."""
        replica, begun = self._replica, self._replica.clock()
        with replica.turns.changed:
            self._handed = False
            replica.turns.changed.notify_all()
            if self._unrenderable or self._ending is Ending.CANCELLED:
                replica.metrics.wasted_s.inc(seconds)
                return
        assert self._rendering is not None
        assert self._state is not None
        try:
            chunk = self._rendering.chunk(place, boundary, self._state.value, latents.value)
        except Exception as error:
            _log.error("rendering_failed", chunk=place.index, error=error)
            self._unrenderable = True
            self.fail(INTERNAL)  # WEIR-236
            return
        self.interactions.sent()
        now = replica.clock()
        with replica.turns.changed:
            self._gate.first_chunk_left(now)
            self._signs.chunk_left()
            self.outbox.post(chunk)
        duration_s = float(place.num_frames / self._gate.frame_rate)
        replica.metrics.chunk_made(place.index, seconds, now - begun, duration_s, now - self._begun)

    def _end(self) -> None:
        """Encoding thread: say how the generation ended."""
        with self._replica.turns.changed:
            self._finish = LastWords.BEGUN
            failed, stopped = self._failure, self._ending is Ending.STOPPED
        assert self._rendering is not None
        if failed is None:
            try:
                self.outbox.post(self._rendering.trailer())
                self.outbox.post(self._rendering.completed())
            except Exception as error:
                _log.error("rendering_failed", error=error)
                failed, stopped = INTERNAL, False
        left = self.interactions.finish()
        self.outbox.post(
            Outcome(failed, stopped, self._rendering.payloads, left.superseded, left.unfinished)
        )

    def _submit(self, work: Callable[[], None]) -> None:
        """Lock held: give the encoding thread something to do, in order."""
        job = self._replica.encoding.submit(self._context.copy().run, work)
        self._jobs.add(job)
        job.add_done_callback(self._job_done)

    def _job_done(self, job: Future[None]) -> None:
        with self._replica.turns.changed:
            self._jobs.discard(job)
            if self._finish is LastWords.BEGUN:
                self._finish = LastWords.DONE
            self._settle()
            self._look()

    def _leave_turn(self) -> None:
        """Generation thread: the turn is over."""
        with self._replica.turns.changed:
            self._at_work = False
            self._settle()
            self._look()

    def _settle(self) -> None:
        """Lock held: take the next step towards the end, when there is to be one."""
        if self._ending is None or self._at_work or self._first_turn is not None:
            return
        cancelled = self._ending is Ending.CANCELLED
        if not cancelled and self._open and self._finish is LastWords.NOT_YET:
            self._finish = LastWords.WAITING
            self._submit(self._end)
        if (cancelled or self._finish is LastWords.DONE) and not self._jobs and not self._releasing:
            self._releasing = True
            self._replica.turns.leave(self)
            self._replica.closing.submit(self._context.copy().run, self._release)

    def _look(self) -> None:
        """Lock held: something has changed that may let the next chunk begin, or keep it."""
        self._stand_still(self._replica.clock())
        self._replica.turns.changed.notify_all()

    def _stand_still(self, now: float) -> None:
        """Lock held: tell of a wait once nothing is in progress any more."""
        if not self._open or self._ending is not None or self._at_work or self._jobs:
            return
        reason = self._gate.blocked(now)
        if reason is not None:
            self._signs.stands_still(reason)

    def _release(self) -> None:
        """Closing thread: free what it holds."""
        try:
            if self._rendering is not None:
                self._rendering.close()
            if self._state is not None:
                self._replica.adapter.close(self._state.value)
        except Exception as error:
            _log.error("generation_not_closed", error=error)
        self._state = self._rendering = None
        with suppress(RuntimeError):  # The loop is closed, so nobody counts slots any more.
            self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._slot.release()  # WEIR-235
        self.left.set()
        if self._cancelled_at is not None:
            self._replica.metrics.cancel_latency_s.observe(
                self._replica.clock() - self._cancelled_at
            )


def _running() -> Future[Any]:
    """Return a future that who waits for it cannot cancel: its work goes on without them."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future
