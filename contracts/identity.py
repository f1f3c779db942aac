"""Who a request is.

Owns: the validated identity of a segment and its rule of stability. Does not own: how ids are made
(the edge's driver passes them in). Enforces: IO-INV-100 (identity is preserved), WEIR-100 (form).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True)
class SegmentIdentity:
    """Identity of one segment's request. `attempt` counts from 1; all else never changes."""

    session_id: str
    request_id: str
    utterance_index: int
    segment_index: int
    attempt: int = 1

    def __post_init__(self) -> None:
        # WEIR-100: ids are safe to log, to put in a header and to compare as bytes.
        for field in ("session_id", "request_id"):
            if _NAME.fullmatch(getattr(self, field)) is None:
                raise ValueError(f"{field} must be 1 to 128 characters of A-Z a-z 0-9 . _ -")
        if self.utterance_index < 0 or self.segment_index < 0:
            raise ValueError("utterance_index and segment_index count from 0")
        if self.attempt < 1:
            raise ValueError("attempt counts from 1")

    def next_attempt(self) -> SegmentIdentity:
        """Return the identity of the next attempt at the same segment."""
        return replace(self, attempt=self.attempt + 1)

    def answers(self, request: SegmentIdentity) -> bool:
        """Tell whether a response with this identity answers `request` (IO-INV-100)."""
        return self == request
