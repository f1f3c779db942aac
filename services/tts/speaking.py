"""One segment on its worker thread.

Owns: driving the adapter step by step, rendering what it gives and passing it on; stopping between
two steps. Does not own: the thread and the slot (`services.tts.engine`), the queue
(`services.tts.handover`). Enforces: WEIR-194 (the iterator of the adapter is opened, advanced and
closed on one thread, at most one step after the caller has gone), WEIR-201 (no text of a model's
exception leaves the process).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from contracts.errors import INTERNAL_MESSAGE, Reason, WeirError, failure
from contracts.modality import WordTime
from services.runtime.logging import get_logger
from services.tts.adapters.base import AudioStep, Step, VoiceAdapter, WordTimesStep
from services.tts.handover import HandOver, HandOverClosedError
from services.tts.planning import Plan
from services.tts.rendering import Rendering, RenderingLimits, segment_failed
from services.tts.timing import word_times

Value = TypeVar("Value")

_log = get_logger(__name__)
_END = object()


@dataclass(frozen=True, slots=True)
class Spoken:
    """The end of a segment: what was produced. `words` None: there are none for this audio."""

    total_samples: int
    audio_ms: int
    words: tuple[WordTime, ...] | None
    busy_s: float


Produced = bytes | Spoken
"""A chunk of encoded audio, or the end."""


class Speaking:
    """Speaks one planned segment into a hand-over. Call it once, on the worker thread."""

    def __init__(
        self,
        adapter: VoiceAdapter,
        plan: Plan,
        handover: HandOver[Produced],
        limits: RenderingLimits,
        clock: Callable[[], float],
    ) -> None:
        self._adapter = adapter
        self._plan = plan
        self._handover = handover
        self._limits = limits
        self._clock = clock
        self._words: WordTimesStep | None = None
        self.busy_s = 0.0
        """Seconds in which the adapter worked."""
        self.wasted_s = 0.0
        """Seconds of audio that a step gave after the caller had gone."""

    def __call__(self) -> None:
        """Speak to the end, to a failure, or until the caller has gone. Never raises."""
        error: WeirError | None = WeirError(failure(Reason.INTERNAL, INTERNAL_MESSAGE))
        try:
            self._speak()
            error = None
        except HandOverClosedError:
            error = None
        except WeirError as refused:
            error = refused
        except Exception as broken:
            _log.error("rendering_failed", error=broken)
        finally:
            self._handover.end(error)

    def _speak(self) -> None:
        rendering = Rendering(self._plan, self._limits)
        # WEIR-194: closed here and now, not when a traceback that holds the frame goes away.
        with closing(self._steps()) as steps:
            for step in steps:
                if self._handover.closed:
                    self._count_waste(step)
                    return
                if isinstance(step, AudioStep):
                    self._put_all(rendering.render(step.samples))
                else:
                    self._keep(step)
        self._put_all(rendering.finish())
        audio_ms = rendering.audio_ms
        words = self._placed_words(audio_ms)
        self._handover.put(Spoken(rendering.total_samples, audio_ms, words, self.busy_s))

    def _put_all(self, chunks: Iterator[bytes]) -> None:
        for chunk in chunks:
            self._handover.put(chunk)

    def _steps(self) -> Generator[Step, None, None]:
        if self._handover.closed:
            return
        steps = self._guarded(lambda: iter(self._adapter.synthesize(self._plan.utterance)))
        try:
            while (step := self._guarded(lambda: next(steps, _END))) is not _END:
                yield self._known(step)
        finally:
            close = getattr(steps, "close", None)
            if close is not None:
                self._guarded(close)

    def _guarded(self, call: Callable[[], Value]) -> Value:
        """Run a part of the adapter: time it, and let none of its exceptions out."""
        started = self._clock()
        try:
            return call()
        except WeirError:
            raise  # The adapter knows what is wrong with the request and says so in our terms.
        except Exception as error:
            _log.error("adapter_failed", error=error)  # WEIR-201
            raise segment_failed("The voice model failed.") from None
        finally:
            self.busy_s += self._clock() - started

    def _known(self, step: object) -> Step:
        if not isinstance(step, AudioStep | WordTimesStep):
            raise segment_failed("The voice model gave something that is not a step.")
        return step

    def _keep(self, step: WordTimesStep) -> None:
        if self._words is not None:
            raise segment_failed("The voice model gave its words twice.")
        self._words = step

    def _placed_words(self, audio_ms: int) -> tuple[WordTime, ...] | None:
        words = None if self._words is None else self._words.words
        # Every word is a piece of the text, so more words than characters are no words.
        if words is None or len(words) > len(self._plan.utterance.text):
            return None
        try:
            return word_times(words, self._plan.stretch, audio_ms)
        except ValueError as error:
            # The audio is good all the same, so the segment goes on without words.
            _log.warning("words_not_aligned", error=error)
            return None

    def _count_waste(self, step: Step) -> None:
        if isinstance(step, AudioStep):
            self.wasted_s += len(step.samples) / self._plan.model_rate_hz
