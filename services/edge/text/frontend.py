"""What a streaming text frontend is, and the records it hands over.

Owns: the protocols between the edge and a frontend, and the frozen records they exchange.
Does not own: any rule about what may be released (the profiles do), nor the choice of a frontend
(the registry does).
Enforces: nothing by code. The protocols state what IO-INV-102 and IO-INV-103 ask of every
implementation: releases are irreversible and in source order, `finish` flushes exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable


class SpanKind(StrEnum):
    """The kinds every profile knows; a profile may tag its spans with finer ones."""

    NATURAL = "natural"
    LEXICAL = "lexical"
    SPECIAL = "special"


class SegmentReason(StrEnum):
    """Why a segment ended where it did."""

    TERMINATOR = "terminator"
    END_OF_INPUT = "end_of_input"
    COMMIT = "commit"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of raw source text that has been released and will never change."""

    source_text: str
    kind: str
    boundary_after: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Raw source text that may be synthesized on its own.

    `source_start` and `source_end` count code points from the start of the utterance. `spans`,
    when there are any, partition `text`, and do not depend on how the text was cut into packets.
    """

    text: str
    source_start: int
    source_end: int
    reason: SegmentReason
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the last call released, what is held, by which rule, and what would settle it.

    `rule` and `resolved_by` are None when nothing is pending.
    """

    spans: tuple[Span, ...]
    pending: str
    rule: str | None
    resolved_by: str | None


class StreamingTextFrontend(Protocol):
    """All that the edge needs of a frontend. One object serves one utterance."""

    def feed(self, text: str) -> list[Segment]:
        """Append source text; return the segments it completed, in source order.

        ValueError: the utterance has failed and nothing of this call is published.
        RuntimeError: the utterance had finished or failed before. TypeError: not a string.
        """
        ...

    def finish(self) -> list[Segment]:
        """End the input; return everything not returned before. RuntimeError when repeated."""
        ...


@runtime_checkable
class Explainable(Protocol):
    """A frontend that can say what it holds back, and why."""

    @property
    def pending(self) -> str:
        """The source text received and not released yet."""
        ...

    @property
    def released_until(self) -> int:
        """Code points of the utterance released so far."""
        ...

    def explain(self) -> Explanation:
        """The outcome of the last call. Costs time in proportion to what is pending."""
        ...


@runtime_checkable
class Committable(Protocol):
    """A frontend that can be told that what it has is complete."""

    def commit(self) -> list[Segment]:
        """Release the pending text and end the segment; the utterance stays open."""
        ...


@runtime_checkable
class StableReleasable(Protocol):
    """A frontend that can end a segment early without touching what is unresolved."""

    def release_stable(self) -> list[Segment]:
        """End the segment at the last point whose reading can no longer change."""
        ...
