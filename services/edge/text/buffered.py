"""Buffered mode: a frontend that cuts an utterance by its granularity, or leaves it whole.

Owns: the offsets and reasons of buffered segments, and the life of one utterance. Does not own:
where the text is cut (`splitter`), a limit on it (the utterance's own limit bounds what is held).
Enforces: IO-INV-102 (segments partition the text in source order, whatever the packets),
IO-INV-103 (`finish` flushes once, and text after it is refused).
"""

from __future__ import annotations

from services.edge.text.frontend import Segment, SegmentReason
from services.edge.text.splitter import IncrementalSplitter


class BufferedTextFrontend:
    """A `StreamingTextFrontend` for buffered mode. One object serves one utterance.

    Granularity `none` gives one segment, at the end of input.
    """

    __slots__ = ("_finished", "_splitter", "_until")

    def __init__(self, granularity: str) -> None:
        """ValueError for an unknown granularity."""
        self._splitter = IncrementalSplitter(granularity)
        self._until = 0
        self._finished = False

    def feed(self, text: str) -> list[Segment]:
        """Append source text; return the segments whose end no further text can move.

        TypeError, with nothing changed, when `text` is no string. RuntimeError after `finish`.
        """
        if not isinstance(text, str):
            raise TypeError(f"text is a string, not {type(text).__name__}")
        self._check_open()
        return self._segments(self._splitter.feed(text), SegmentReason.TERMINATOR)

    def finish(self) -> list[Segment]:
        """End the input; return the rest as one segment. RuntimeError when repeated."""
        self._check_open()
        # IO-INV-103: the one flush.
        self._finished = True
        return self._segments(self._splitter.finish(), SegmentReason.END_OF_INPUT)

    def _check_open(self) -> None:
        if self._finished:
            raise RuntimeError("the utterance has finished")

    def _segments(self, pieces: list[str], reason: SegmentReason) -> list[Segment]:
        segments: list[Segment] = []
        for piece in pieces:
            start, self._until = self._until, self._until + len(piece)
            segments.append(Segment(piece, start, self._until, reason))
        return segments
