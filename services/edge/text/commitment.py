"""The built-in frontend: a commitment policy and segment assembly, nothing more.

Owns: how the two are put together. Does not own: readiness (`policy` and the profile), offsets
and cutting (`segments`), which profile a session gets (`registry`).
Enforces: IO-INV-102 (a call that fails publishes no segment), IO-INV-103 (`finish` flushes once).
"""

from __future__ import annotations

from services.edge.text import zh_en_special_v1
from services.edge.text.frontend import (
    Explanation,
    Segment,
    SegmentReason,
    Span,
    StreamingTextFrontend,
)
from services.edge.text.policy import CommitmentPolicy
from services.edge.text.segments import SegmentAssembly


class CommitmentTextFrontend:
    """A `StreamingTextFrontend`, and `Explainable`. One object serves one utterance."""

    __slots__ = ("_assembly", "_last_spans", "_policy")

    def __init__(self, policy: CommitmentPolicy) -> None:
        self._policy = policy
        self._assembly = SegmentAssembly()
        self._last_spans: tuple[Span, ...] = ()

    def feed(self, text: str) -> list[Segment]:
        """Append source text; return the segments it completed."""
        spans = self._policy.feed(text).spans
        # IO-INV-102: a policy that failed has raised, and nothing of the call gets here.
        self._last_spans = spans
        return self._assembly.add(spans)

    def finish(self) -> list[Segment]:
        """End the input; return everything not returned before."""
        spans = self._policy.feed("", final=True).spans
        self._last_spans = spans
        segments = self._assembly.add(spans)
        # IO-INV-103: what no boundary has ended is a segment at the end of input.
        return segments + self._assembly.close(SegmentReason.END_OF_INPUT)

    @property
    def pending(self) -> str:
        """The source text received and not released. Costs time in proportion to its length."""
        return self._policy.pending_text

    @property
    def released_until(self) -> int:
        """Code points of the utterance released so far."""
        return self._assembly.released_until

    def explain(self) -> Explanation:
        """Tell what the last call released, what is pending, and which rule holds it."""
        return self._policy.explain(self._last_spans)


def create_zh_en_special_v1(*, language: str, max_pending_characters: int) -> StreamingTextFrontend:
    """A fresh frontend for one utterance.

    The rules are the same for both languages of the profile, so `language` chooses nothing; which
    languages may commit is declared by adapters and checked before a frontend is made.
    """
    del language
    policy = CommitmentPolicy(zh_en_special_v1.PROFILE, max_pending_characters)
    return CommitmentTextFrontend(policy)
