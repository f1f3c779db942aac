"""What of one segment could not be read as it should be.

Owns: counting it and telling the log once. Does not own: what is then spoken (`english`,
`chinese`). Enforces: WEIR-070 (counts and types of exceptions, nothing of the text).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from services.runtime.logging import get_logger

_log = get_logger(__name__)


@dataclass(slots=True)
class Omissions:
    """Counts for one segment; used by one thread at a time."""

    words: int = 0
    """Words that are not spoken because the G2P failed on them."""
    clauses: int = 0
    """Clauses whose numbers were read without the normalizer."""
    causes: set[str] = field(default_factory=set)
    """Names of the types of the exceptions."""

    def note_word(self, cause: Exception) -> None:
        """Count a word that is left out."""
        self.words += 1
        self.causes.add(type(cause).__name__)

    def note_clause(self, cause: Exception) -> None:
        """Count a clause that is read as it stands."""
        self.clauses += 1
        self.causes.add(type(cause).__name__)

    def log(self) -> None:
        """Write one line when there is anything to tell."""
        if self.words or self.clauses:
            # WEIR-070: an exception's text may quote the word it fell over.
            _log.warning(
                "text_not_fully_read",
                words_left_out=self.words,
                clauses_not_normalized=self.clauses,
                causes=sorted(self.causes),
            )
