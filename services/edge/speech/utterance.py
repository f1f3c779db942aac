"""One utterance: text in, segments ready to be spoken.

Owns: the frontend of the utterance, staging, the bounded ready queue, the count of characters. Does
not own: where segments end (the frontend), their delivery (`delivery`), the session (`core`).
Enforces: IO-INV-102 (what is staged is never revised, dropped, merged or reordered), IO-INV-103
(end of input flushes once; the limits fail the utterance and submit nothing of that call).
"""

from __future__ import annotations

from collections import deque

from contracts.errors import Failure, Reason, failure
from services.edge.speech.terms import SpeechLimits
from services.edge.text.frontend import Segment, StreamingTextFrontend


class TextRefusedError(Exception):
    """The utterance has failed over its text; nothing of that call was staged."""

    def __init__(self, refusal: Failure) -> None:
        super().__init__(refusal.message)
        self.failure = refusal


class Utterance:
    """Text of one utterance on its way to synthesis, in source order.

    At most `limits.ready_segments` segments wait in the ready queue. When it is full the rest stays
    staged in order, bounded by the limit of the utterance's characters.
    """

    __slots__ = (
        "_characters",
        "_frontend",
        "_limits",
        "_ready",
        "_staged",
        "index",
        "segment_count",
        "sent_ms",
        "sentence_count",
        "submitted_until",
    )

    def __init__(self, index: int, frontend: StreamingTextFrontend, limits: SpeechLimits) -> None:
        self.index = index
        self.segment_count = 0
        """Segments so far, spoken or not: the next segment index."""
        self.sentence_count = 0
        """Count of `audio.start` sent."""
        self.sent_ms = 0.0
        """Milliseconds of audio sent, from the utterance's first sample."""
        self.submitted_until = 0
        """Code point up to which text was handed to synthesis."""
        self._frontend = frontend
        self._limits = limits
        self._characters = 0
        self._ready: deque[tuple[int, Segment]] = deque()
        self._staged: deque[tuple[int, Segment]] = deque()

    def feed(self, text: str) -> None:
        """Append source text and stage what became ready. Raises TextRefusedError."""
        limit = self._limits.utterance_characters
        if self._characters + len(text) > limit:
            raise TextRefusedError(
                failure(
                    Reason.UTTERANCE_TOO_LONG,
                    f"The utterance is longer than its limit of {limit} characters.",
                )
            )
        self._characters += len(text)
        try:
            segments = self._frontend.feed(text)
        except ValueError:
            raise TextRefusedError(self._pending_limit()) from None
        self._stage(segments)

    def finish(self) -> None:
        """End the input and stage the rest. Raises TextRefusedError."""
        try:
            # IO-INV-103: the one flush; the frontend refuses a second.
            segments = self._frontend.finish()
        except ValueError:
            raise TextRefusedError(self._pending_limit()) from None
        self._stage(segments)

    def take(self) -> tuple[int, Segment] | None:
        """Return the next segment to speak with its index, or None when none is ready."""
        if not self._ready:
            return None
        taken = self._ready.popleft()
        self._refill()
        self.submitted_until = taken[1].source_end
        return taken

    def discard(self) -> None:
        """Forget everything that has not been taken: it will never be spoken."""
        self._staged.clear()
        self._ready.clear()

    @property
    def has_work(self) -> bool:
        """True while a committed segment waits to be spoken."""
        return bool(self._ready)

    def _stage(self, segments: list[Segment]) -> None:
        for segment in segments:
            index = self.segment_count
            self.segment_count += 1
            # White space alone has no sound: it keeps its index and is not submitted.
            if segment.text.strip():
                self._staged.append((index, segment))
        self._refill()

    def _refill(self) -> None:
        while self._staged and len(self._ready) < self._limits.ready_segments:
            self._ready.append(self._staged.popleft())

    def _pending_limit(self) -> Failure:
        return failure(
            Reason.PENDING_TEXT_LIMIT,
            "The text that could still change how it is read is longer than its limit of "
            f"{self._limits.pending_characters} code points.",
        )
