"""Where the words of a source text stand, as a caption shows them.

Owns: cutting raw text into words with their positions. Does not own: how a word is pronounced or
when it is heard (each adapter knows that). Enforces: IO-INV-102 (a word is a slice of the raw text,
never a normalized form of it).

A Han or kana character is a word of its own: captions highlight Chinese character by character, and
no segmenter can then disagree with the reader. Anything else is a run between white space, stripped
of the punctuation around it but not of what is inside (`don't`, `12.5%`, `U.S.`, `a/b`).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

# Dashes and ellipses that join two spoken words without a space; all full-width marks as well.
_SEPARATORS = frozenset("—…⋯·・،؛؟。，、；：？！（）「」『』【】《》〈〉“”　")
_SPOKEN_MARKS = frozenset("%‰#@&*/％＃＠＆")
_LEADING_MARKS = frozenset("#@&-−＃＠＆")


@dataclass(frozen=True, slots=True)
class SourceWord:
    """`text` is exactly source[start:end]; positions are code points."""

    text: str
    start: int
    end: int


def is_spoken(character: str) -> bool:
    """True for letters and digits of any script: what makes a text have sound."""
    return character.isalnum()


def is_ideographic(character: str) -> bool:
    """True for Han and kana, which stand without spaces and count as words one by one."""
    code = ord(character)
    return (
        0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0x3041 <= code <= 0x30FF
        or 0x20000 <= code <= 0x3FFFF
        or code in (0x3005, 0x3007)
    )


def source_words(text: str) -> tuple[SourceWord, ...]:
    """Cut `text` into its words, in order. A text without letters or digits has none."""
    words: list[SourceWord] = []
    run_start = -1
    for position, character in enumerate(text):
        ideographic = is_ideographic(character)
        if ideographic or character.isspace() or character in _SEPARATORS:
            _close_run(text, run_start, position, words)
            run_start = -1
            if ideographic and is_spoken(character):
                words.append(SourceWord(character, position, position + 1))
        elif run_start < 0:
            run_start = position
    _close_run(text, run_start, len(text), words)
    return tuple(words)


def _close_run(text: str, start: int, end: int, words: list[SourceWord]) -> None:
    if start < 0:
        return
    while start < end and _is_edge(text[start]) and text[start] not in _LEADING_MARKS:
        start += 1
    abbreviation = _is_dotted(text, start, end)
    while end > start and _is_edge(text[end - 1]) and not abbreviation:
        end -= 1
        abbreviation = _is_dotted(text, start, end)
    if any(is_spoken(character) for character in text[start:end]):
        words.append(SourceWord(text[start:end], start, end))


def _is_edge(character: str) -> bool:
    return character not in _SPOKEN_MARKS and unicodedata.category(character)[0] in "PCZ"


def _is_dotted(text: str, start: int, end: int) -> bool:
    """True for two or more pairs of one letter and a dot, like `U.S.`: its last dot belongs."""
    pairs = text[start:end]
    return (
        len(pairs) >= 4
        and len(pairs) % 2 == 0
        and set(pairs[1::2]) == {"."}
        and pairs[::2].isalpha()
    )
