"""The loaded model and everything that is spoken with it.

Owns: the worker threads (one a slot), the admission of segments, and each segment's life from its
place in the queue to the moment its thread has left the adapter. Does not own: what happens on the
thread (`services.tts.speaking`), gRPC. Enforces: WEIR-190 (a slot is free when, and only when, its
thread has left the adapter), IO-INV-101 (the order of updates: accepted, audio, its terminal, word
times, their terminal, outcome), IO-INV-100 (one synthesis answers one identity).
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncGenerator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from contracts.capabilities import SpeechCapabilities
from contracts.errors import WeirError
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    Outcome,
    SpeechUpdate,
    Usage,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest
from services.tts.adapters.base import VoiceAdapter
from services.tts.admission import Admission, AdmissionLimits, Ticket
from services.tts.handover import HandOver
from services.tts.metrics import TtsMetrics
from services.tts.planning import Plan, plan
from services.tts.rendering import RenderingLimits
from services.tts.settings import EngineSettings
from services.tts.speaking import Produced, Speaking, Spoken

_clock = time.monotonic


class Engine:
    """Speaks segments with a loaded adapter. Made and used on one event loop."""

    def __init__(
        self,
        adapter: VoiceAdapter,
        settings: EngineSettings,
        metrics: TtsMetrics,
        model_name: str = "",
    ) -> None:
        declared = adapter.capabilities
        self.capabilities: SpeechCapabilities = replace(
            declared,
            model=model_name or declared.model,
            max_text_characters=min(declared.max_text_characters, settings.max_text_characters),
        )
        self.settings = settings
        self.metrics = metrics
        self.adapter = adapter
        self.admission = Admission(
            AdmissionLimits(
                slots=adapter.concurrency,
                queue=settings.queue,
                retry_delay_min_ms=settings.retry_delay_min_ms,
                retry_delay_max_ms=settings.retry_delay_max_ms,
            ),
            _clock,
        )
        self.workers = ThreadPoolExecutor(adapter.concurrency, thread_name_prefix="voice")
        metrics.watch(self.admission)

    def begin(self, request: SegmentRequest) -> Synthesis:
        """Take a place for `request`. The caller ends it with `Synthesis.cancel` in any case.

        Raises WeirError: UNSUPPORTED_OPTION, MESSAGE_TOO_LARGE, OVERLOADED or SHUTTING_DOWN, and
        then nothing was taken.
        """
        planned = plan(request, self.capabilities, self.adapter.native_speed)
        ticket = self.admission.admit(request.identity.session_id)
        return Synthesis(self, planned, ticket)

    def close(self) -> None:
        """Refuse everything new and let each thread end when it has left the adapter.

        The adapter may be closed once `admission.empty` has returned, not before.
        """
        self.admission.drain()
        self.workers.shutdown(wait=False, cancel_futures=True)


class Synthesis:
    """One accepted segment. Read `updates` once; `cancel` at any time, any number of times."""

    def __init__(self, engine: Engine, planned: Plan, ticket: Ticket) -> None:
        self._engine = engine
        self._plan = planned
        self._ticket = ticket
        self._begun = _clock()
        self._handover: HandOver[Produced] = HandOver(engine.settings.handover_chunks)
        self._left = asyncio.Event()
        self._started = False
        self._finished = False
        self._cancelled_at: float | None = None
        self.accepted = Accepted(planned.output, ticket.position)

    async def updates(self) -> AsyncGenerator[SpeechUpdate, None]:
        """Yield what follows `accepted`, in order, the outcome last.

        Raises WeirError when the segment fails. A slot that was held is free again when this ends.
        """
        await self._ticket.wait()
        queued_s = _clock() - self._begun
        self._engine.metrics.queued_s.observe(queued_s)
        self._start()
        chunk_count = total_bytes = 0
        spoken: Spoken | None = None
        while (item := await self._next()) is not None:
            if isinstance(item, Spoken):
                spoken = item
                continue
            if not chunk_count:
                self._engine.metrics.first_audio_s.observe(_clock() - self._begun)
            yield AudioChunk(chunk_count, item)
            chunk_count += 1
            total_bytes += len(item)
        assert spoken is not None  # The end of production without an error comes after `Spoken`.
        self._finished = True
        yield AudioCompleted(chunk_count, total_bytes, spoken.total_samples)
        if self._plan.utterance.word_times:
            if spoken.words:
                yield WordTimes(spoken.words)
            yield WordTimesCompleted(len(spoken.words or ()), spoken.words is not None)
        yield Outcome(self._usage(spoken, queued_s))

    def cancel(self) -> None:
        """Stop speaking. The adapter stops after its current step; then the slot is free."""
        if self._cancelled_at is None:
            self._cancelled_at = _clock()
        self._handover.close()
        if not self._started:
            self._ticket.release()

    async def left(self) -> None:
        """Return when the worker thread has left the adapter; at once when it never was there."""
        if self._started:
            await self._left.wait()

    async def _next(self) -> Produced | None:
        """Return the next of what is produced, None at the end; the slot is then free.

        Who hears of an end or a failure may come back at once and must find the slot free.
        """
        try:
            item = await self._handover.get()
        except WeirError:
            await self.left()
            raise
        if item is None:
            await self.left()
        return item

    def _start(self) -> None:
        self._started = True
        speaking = Speaking(
            self._engine.adapter,
            self._plan,
            self._handover,
            RenderingLimits(self._engine.settings.chunk_ms, self._engine.settings.max_audio_s),
            _clock,
        )
        loop = asyncio.get_running_loop()

        def on_left(_: Future[None]) -> None:
            with suppress(RuntimeError):  # The loop is closed, so nobody counts slots any more.
                loop.call_soon_threadsafe(self._leave, speaking)

        # The worker's log lines carry the ids of this call.
        context = contextvars.copy_context()
        self._engine.workers.submit(context.run, speaking).add_done_callback(on_left)

    def _leave(self, speaking: Speaking) -> None:
        self._ticket.release()  # WEIR-190
        self._left.set()
        self._engine.metrics.wasted_audio_s.inc(speaking.wasted_s)
        if self._cancelled_at is not None and not self._finished:
            self._engine.metrics.cancel_latency_s.observe(_clock() - self._cancelled_at)

    def _usage(self, spoken: Spoken, queued_s: float) -> Usage:
        audio_s = spoken.audio_ms / 1000
        self._engine.metrics.audio_s.inc(audio_s)
        if audio_s:
            self._engine.metrics.real_time_factor.observe(spoken.busy_s / audio_s)
        return Usage(
            input_characters=len(self._plan.utterance.text),
            output_audio_ms=spoken.audio_ms,
            busy_ms=round(spoken.busy_s * 1000),
            queued_ms=round(queued_s * 1000),
        )
