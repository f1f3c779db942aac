"""The splitter of buffered mode: a whole utterance into sentences or clauses.

Owns: where buffered text is cut, and when that is certain. Does not own: segments and their
offsets (`buffered`), anything of commitment mode, which never splits. Enforces IO-INV-102 for
buffered text: the pieces concatenated are the text, in order, each given out once, and they do
not depend on how the text was cut into packets.

Its marks are fixed. Latin marks need white space after them, because they also stand in numbers
and names; the marks of other scripts end a sentence by themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final


class SplitGranularity(StrEnum):
    """How finely buffered text is cut."""

    NONE = "none"
    SENTENCE = "sentence"
    CLAUSE = "clause"


LATIN_ENDS: Final = ".!?"
ENDS: Final = "。！？…।॥؟"
CLAUSE_MARKS: Final = ",;，；،"
# The clause marks that also group the digits of a number.
DIGIT_GROUPING: Final = ",，،"
# Quotes and brackets that can only close. The straight ones are judged by what is around them.
CLOSERS: Final = "”’»›)]}）】」』》〉〕］｝"
STRAIGHT_QUOTES: Final = "\"'"


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one granularity looks for. `begins`: a mark. `goes_on`: marks and closers after it."""

    begins: re.Pattern[str]
    goes_on: re.Pattern[str]
    cutting: frozenset[str]


def _rule(latin: str, cutting: str) -> _Rule:
    marks = re.escape(latin + cutting)
    begins = re.compile(f"[{marks}]") if marks else re.compile(r"(?!)")
    return _Rule(begins, re.compile(f"[{marks}{re.escape(CLOSERS)}]*+"), frozenset(cutting))


_RULES: Final = {
    SplitGranularity.NONE: _rule("", ""),
    SplitGranularity.SENTENCE: _rule(LATIN_ENDS, ENDS),
    SplitGranularity.CLAUSE: _rule(LATIN_ENDS, ENDS + CLAUSE_MARKS),
}


def split(text: str, granularity: str) -> list[str]:
    """Cut `text` into pieces that concatenate to it. ValueError for an unknown granularity.

    White space goes with the piece after it; at the end it is a piece of its own.
    """
    splitter = IncrementalSplitter(granularity)
    return splitter.feed(text) + splitter.finish()


@dataclass(slots=True)
class _Run:
    """The marks that may end a piece, with their closing quotes, so far. Offsets in code points."""

    start: int
    end: int
    groups: bool
    """A mark after a digit that would group, or point, the digits of one number."""
    cuts_alone: bool = False
    quoted: bool = False
    """A straight quote came last: only a mark can go on after it."""
    held_quote: str = ""
    """A straight quote that closes if white space or nothing follows, else opens."""


class IncrementalSplitter:
    """Cuts text that arrives in packets. Reads every character once, whatever the packets.

    A piece is given out as soon as no further text can move its end.
    """

    __slots__ = ("_last", "_odd_quotes", "_parts", "_received", "_rule", "_run", "_start")

    def __init__(self, granularity: str) -> None:
        """ValueError for an unknown granularity."""
        self._rule = _RULES[SplitGranularity(granularity)]
        self._parts: list[str] = []
        self._start = 0
        self._received = 0
        self._run: _Run | None = None
        self._odd_quotes = False
        self._last = ""

    def feed(self, text: str) -> list[str]:
        """Append `text`; return the pieces that are certain now."""
        if not text:
            return []
        cuts: list[int] = []
        index = 0
        while index < len(text):
            if self._run is None:
                index = self._pass_over(text, index)
            elif self._run.held_quote:
                self._settle_quote(self._run, text[index], cuts)
            else:
                index = self._extend(self._run, text, index, cuts)
        self._received += len(text)
        self._last = text[-1]
        self._parts.append(text)
        return self._take(cuts)

    def finish(self) -> list[str]:
        """Return what is left; a mark at the very end has nothing behind it to cut off."""
        rest = "".join(self._parts)
        self._parts = []
        return [rest] if rest else []

    def _pass_over(self, text: str, index: int) -> int:
        """Go on to the next mark."""
        found = self._rule.begins.search(text, index)
        stop = len(text) if found is None else found.start()
        self._count_quotes(text.count('"', index, stop))
        if found is not None:
            before = text[stop - 1] if stop else self._last
            at = self._received + stop
            groups = text[stop] in DIGIT_GROUPING and before.isdecimal()
            self._run = _Run(at, at, groups)
        return stop

    def _extend(self, run: _Run, text: str, index: int, cuts: list[int]) -> int:
        """Take in what belongs to the run; settle it at the first character that does not."""
        end = index
        if not run.quoted or self._rule.begins.match(text, index):
            end = self._rule.goes_on.match(text, index).end()  # type: ignore[union-attr]  # may be empty, so it always matches
        if end > index:
            run.quoted = False
            run.cuts_alone |= not self._rule.cutting.isdisjoint(text[index:end])
            run.end = self._received + end
            return end
        following = text[end]
        if following not in STRAIGHT_QUOTES:
            self._settle(run, following, cuts)
            return end
        if following == '"' and self._odd_quotes:
            self._close_quote(run, following)
        else:
            run.held_quote = following
        return end + 1

    def _settle_quote(self, run: _Run, following: str, cuts: list[int]) -> None:
        quote, run.held_quote = run.held_quote, ""
        if following.isspace():
            self._close_quote(run, quote)
            return
        self._settle(run, quote, cuts)
        self._count_quotes(quote.count('"'))

    def _close_quote(self, run: _Run, quote: str) -> None:
        run.end += 1
        run.quoted = True
        self._count_quotes(quote.count('"'))

    def _settle(self, run: _Run, following: str, cuts: list[int]) -> None:
        """Decide whether the run cuts, now that the character behind it is known."""
        self._run = None
        if run.groups and run.end - run.start == 1 and following.isdecimal():
            return
        if run.cuts_alone or following.isspace():
            cuts.append(run.end)

    def _count_quotes(self, count: int) -> None:
        self._odd_quotes ^= count % 2 == 1

    def _take(self, cuts: list[int]) -> list[str]:
        if not cuts:
            return []
        held, start = "".join(self._parts), self._start
        bounds = [0, *(cut - start for cut in cuts)]
        pieces = [held[a:b] for a, b in pairwise(bounds)]
        self._parts = [held[bounds[-1] :]]
        self._start = cuts[-1]
        return pieces
