"""Segment assembly: from released spans to raw text that is synthesized on its own.

Owns: the open segment, the offsets. Does not own: boundaries (the policy puts them on spans).
Enforces: IO-INV-102: segments partition what was released, in source order, each once, and
neither they nor their spans depend on how the text was cut into packets.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.edge.text.frontend import Segment, SegmentReason, Span, SpanKind


class SegmentAssembly:
    """Collects spans until a boundary ends the segment."""

    __slots__ = ("_open", "_released_until", "_start")

    def __init__(self) -> None:
        self._open: list[Span] = []
        self._start = 0
        self._released_until = 0

    @property
    def released_until(self) -> int:
        """Code points received as spans so far."""
        return self._released_until

    def add(self, spans: Iterable[Span]) -> list[Segment]:
        """Append released spans; return the segments whose boundary they brought."""
        segments: list[Segment] = []
        for span in spans:
            self._open.append(span)
            self._released_until += len(span.source_text)
            if span.boundary_after:
                segments.append(self._cut(SegmentReason.TERMINATOR))
        return segments

    def close(self, reason: SegmentReason) -> list[Segment]:
        """End the open segment, if there is text in it."""
        return [self._cut(reason)] if self._open else []

    def _cut(self, reason: SegmentReason) -> Segment:
        spans = coalesce(self._open)
        text = "".join(span.source_text for span in spans)
        segment = Segment(text, self._start, self._released_until, reason, spans)
        self._open = []
        self._start = self._released_until
        return segment


def coalesce(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join neighbouring natural spans, which is where packets have left their seams."""
    joined: list[Span] = []
    run: list[Span] = []
    for span in spans:
        if span.kind != SpanKind.NATURAL:
            joined.extend(_as_one(run))
            joined.append(span)
            run = []
            continue
        run.append(span)
        if span.boundary_after:
            joined.extend(_as_one(run))
            run = []
    joined.extend(_as_one(run))
    return tuple(joined)


def _as_one(run: list[Span]) -> list[Span]:
    if len(run) < 2:
        return run
    text = "".join(span.source_text for span in run)
    return [Span(text, SpanKind.NATURAL, run[-1].boundary_after)]
