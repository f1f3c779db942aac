"""Phonemes that remember which word of the source they speak.

Owns: the value every grapheme-to-phoneme step makes, joining and cutting it. Does not own: how a
language is read (`english`, `chinese`) or how long a phoneme lasts (the voices know). Enforces:
IO-INV-102 (times are told of words of the raw text, so each symbol keeps its word).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PAUSE = -1
"""Word index of a symbol that belongs to no word: spaces and punctuation."""

SENTENCE_MARKS = frozenset(".!?…")
CLAUSE_MARKS = frozenset(",;:—")
_SILENT = frozenset(' ;:,.!?—…"()“”')


@dataclass(frozen=True, slots=True)
class Phonemes:
    """Symbols of the voices' alphabet; words[i] is the word that symbols[i] speaks, or PAUSE."""

    symbols: str
    words: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.symbols) != len(self.words):
            raise ValueError("every symbol has a word index")

    @property
    def audible(self) -> bool:
        """True when at least one symbol is more than a pause."""
        return not all(map(is_silent, self.symbols))

    def known_to(self, vocabulary: Iterable[str]) -> Phonemes:
        """Return the same without the symbols that a voice has no id for."""
        known = frozenset(vocabulary)
        return _of((s, w) for s, w in zip(self.symbols, self.words, strict=True) if s in known)

    def chunks(self, limit: int) -> Iterator[Phonemes]:
        """Cut into pieces of at most `limit` symbols, at the best pause in reach.

        A sentence mark beats a clause mark, that beats a space, that beats a cut inside a word.
        """
        start = 0
        while len(self.symbols) - start > limit:
            end = self._cut(start, start + limit)
            yield self._slice(start, end)
            start = end
        if start < len(self.symbols):
            yield self._slice(start, len(self.symbols))

    def _cut(self, start: int, end: int) -> int:
        # The last third, so that no piece is a stump unless there is no other way.
        earliest = max(start + 1, start + (end - start) * 2 // 3)
        for marks, lowest in (
            (SENTENCE_MARKS, earliest),
            (CLAUSE_MARKS, earliest),
            (SENTENCE_MARKS | CLAUSE_MARKS, start + 1),
            (frozenset(" "), start + 1),
        ):
            for position in range(end, lowest - 1, -1):
                if self.symbols[position - 1] in marks:
                    return position
        return end

    def _slice(self, start: int, end: int) -> Phonemes:
        return Phonemes(self.symbols[start:end], self.words[start:end])


def is_silent(symbol: str) -> bool:
    """True for a symbol that is heard as a pause: space, punctuation, quotation marks."""
    return symbol in _SILENT


def pause(symbols: str) -> Phonemes:
    """Return symbols that belong to no word."""
    return Phonemes(symbols, (PAUSE,) * len(symbols))


def of_word(symbols: str, word: int) -> Phonemes:
    """Return symbols that all speak one word; pauses inside it belong to it."""
    return Phonemes(symbols, (word,) * len(symbols))


def joined(parts: Iterable[Phonemes]) -> Phonemes:
    """Concatenate, with runs of spaces made one and none at the ends."""
    symbols: list[tuple[str, int]] = []
    for part in parts:
        for symbol, word in zip(part.symbols, part.words, strict=True):
            if symbol != " " or (symbols and symbols[-1][0] != " "):
                symbols.append((symbol, word))
    while symbols and symbols[-1][0] == " ":
        symbols.pop()
    return _of(symbols)


def _of(pairs: Iterable[tuple[str, int]]) -> Phonemes:
    listed = list(pairs)
    return Phonemes("".join(s for s, _ in listed), tuple(w for _, w in listed))
