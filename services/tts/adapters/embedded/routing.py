"""What is spoken in which language, and by which voice.

Owns: cutting a text into sentences, telling Chinese from English, finding the English runs inside
Chinese, choosing the voice. Does not own: reading aloud (`english`, `chinese`, the voices).
Everything here is a matter of the text: the request's language decides only where the text is
silent about it (digits alone).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from services.tts.adapters.words import is_ideographic

MAX_SENTENCE_CHARACTERS = 300
"""A longer sentence is cut at a clause mark or a space: steps stay short, memory bounded."""

_CJK_END = re.compile(r"[。！？…\n]+[”’」』】》）\")\]]*")
_CLAUSE_END = re.compile(r"[，；、：,;:—]+(?![0-9])\s*|\s+")

# Latin letters with what may be glued to them: `GPT-4`, `v2.1`, `a@b.com`, `don't`.
_TOKEN = r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ0-9]*(?:[._@'’+/&:?=%#~-]+[A-Za-zÀ-ɏ0-9]+)*"
# What may stand between two such tokens of one English run: marks and spaces, or one number.
_BRIDGE = r"""(?:[ ,;:.!?"'’()–-]{1,8}|[ ]\d[\d.,]*[ ])"""
_ENGLISH_RUN = re.compile(rf"{_TOKEN}(?:{_BRIDGE}{_TOKEN})*")
_AFTER_NUMBER = re.compile(r"[0-9][ ]?$")
_UNIT = re.compile(
    r"(?:km/h|m/s|[kcdmµ]?m[²³23]?|ha|[kmµ]?g|lb|oz|t|[md]?l|[kmg]?hz|[kmg]?wh?|db|°?[cf]|min|ms|h|s)"
    r"(?![A-Za-z])",
    re.IGNORECASE,
)


class Script(Enum):
    """How a sentence is read."""

    ENGLISH = "english"
    CHINESE = "chinese"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A piece of the source that is read at once; `start` is its place in code points."""

    text: str
    start: int


def sentences(text: str, split_latin: Callable[[str], list[str]]) -> Iterator[Sentence]:
    """Cut `text` at the ends of sentences; every spoken character is in exactly one of them.

    `split_latin` cuts text at Latin full stops (it knows titles and initials) and returns stripped
    pieces of its argument, in order.
    """
    for block_start, block_end in _blocks(text):
        position = block_start
        for piece in split_latin(text[block_start:block_end]):
            start = text.index(piece, position)
            position = start + len(piece)
            yield from _bounded(piece, start)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _CJK_END.finditer(text):
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def _bounded(piece: str, start: int) -> Iterator[Sentence]:
    while len(piece) > MAX_SENTENCE_CHARACTERS:
        ends = [m.end() for m in _CLAUSE_END.finditer(piece, 1, MAX_SENTENCE_CHARACTERS)]
        cut = ends[-1] if ends else MAX_SENTENCE_CHARACTERS
        yield Sentence(piece[:cut], start)
        piece, start = piece[cut:], start + cut
    yield Sentence(piece, start)


def script_of(text: str, numbers_are_chinese: bool) -> Script:
    """Tell how a sentence is read: any Han makes it Chinese, else any other letter English."""
    if has_han(text):
        return Script.CHINESE
    if any(character.isalpha() for character in text):
        return Script.ENGLISH
    return Script.CHINESE if numbers_are_chinese else Script.ENGLISH


def has_han(text: str) -> bool:
    """True when there is a character that is read as Chinese."""
    return any(map(is_han, text))


def is_han(character: str) -> bool:
    """True for Chinese characters; kana is not spoken by these voices."""
    return is_ideographic(character) and not 0x3041 <= ord(character) <= 0x30FF


def english_runs(text: str) -> Iterator[tuple[int, int, bool]]:
    """Cut a Chinese sentence into (start, end, is English), covering it all, in order.

    A unit right after a number stays with the number, so that it is read as Chinese: `25 kg`.
    """
    reached = 0
    position = 0
    while match := _ENGLISH_RUN.search(text, position):
        start, end = match.span()
        after_number = _AFTER_NUMBER.search(text, max(0, start - 2), start)
        if after_number and (unit := _UNIT.match(text, start)):
            position = unit.end()
            continue
        if reached < start:
            yield reached, start, False
        yield start, end, True
        reached = position = end
    if reached < len(text):
        yield reached, len(text), False
