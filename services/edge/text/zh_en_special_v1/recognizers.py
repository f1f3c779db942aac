"""The recognizers: how far an atom reaches, and whether more text could change that.

Owns: the rules of the lexical and special atoms and of natural text. Does not own: releasing
(the scanner), the pending text (its owner is `held`), tables (`characters`, `units`).
Enforces: IO-INV-102: a recognizer never closes an atom at the frontier, and never lets go of a
terminator run or a decimal point that touches it.

An atom recognizer reads from `index` with what it remembers of the atom so far. It returns where
the atom ends if the input ends now, and its memory when the atom is still open (None when a
following character has closed it). When it goes on with a held atom the text begins with the
tail of its memory, and an end before the text (negative) means white space held in front of it.
"""

from __future__ import annotations

import re
from typing import Final

from services.edge.text.frontend import Span, SpanKind
from services.edge.text.zh_en_special_v1.characters import (
    AMBIGUOUS_PUNCTUATION,
    ASCII_LETTERS,
    BODY_SYMBOLS,
    CONNECTORS,
    DIGITS,
    KEYCAP_MARKS,
    LEADING_SYMBOLS,
    LETTERS,
    SPACED_SIGNS,
    STRONG_TERMINATORS,
    SUPERSCRIPTS,
    one_of,
)
from services.edge.text.zh_en_special_v1.held import (
    AFTER_DIGIT,
    HELD_POINT,
    HELD_RUN,
    NOT_DOTTED,
    PLAIN_WORD,
    LexicalMemo,
    NaturalMemo,
    SpecialMemo,
)
from services.edge.text.zh_en_special_v1.units import match_unit

_WORD: Final = one_of(LETTERS + DIGITS + SUPERSCRIPTS)
_WORD_BODY: Final = re.compile(f"{_WORD}*+(?:{one_of(CONNECTORS)}(?={_WORD}){_WORD}++)*+")
_LETTER: Final = one_of(ASCII_LETTERS)
_DOTTED_FROM_LETTER: Final = re.compile(rf"(?:{_LETTER}\.)*+{_LETTER}?")
_DOTTED_FROM_DOT: Final = re.compile(rf"\.(?:{_LETTER}\.)*+{_LETTER}?|")
# Three characters (`U.S`), so that the dot which follows completes the second pair.
_DOTTED_BEFORE_LAST_DOT: Final = 3

_BODY: Final = one_of(DIGITS + ASCII_LETTERS + BODY_SYMBOLS + KEYCAP_MARKS)
_JOINED_POINT: Final = f"{one_of(AMBIGUOUS_PUNCTUATION)}(?={one_of(LETTERS + DIGITS)})"
_SPECIAL_BODY: Final = re.compile(f"{_BODY}*+(?:{_JOINED_POINT}{_BODY}*+)*+")
_DIGIT: Final = re.compile(one_of(DIGITS))
_SPACES: Final = re.compile(r"[^\S\n]*+")

# A dot directly before a digit is a decimal point, unless another dot stands before it. It is
# then no part of a terminator run. At the frontier nothing follows, and the dot joins the run.
_ANY_DIGIT: Final = one_of(DIGITS)
_ATOM_START: Final = (
    rf"{one_of(LETTERS + DIGITS + LEADING_SYMBOLS)}|(?<!\.)\.(?={_ANY_DIGIT})|．(?={_ANY_DIGIT})"
)
_RUN: Final = rf"(?:{one_of(STRONG_TERMINATORS.replace('.', ''))}|\.(?!{_ANY_DIGIT})|(?<=\.)\.)++"
_NATURAL_STOP: Final = re.compile(rf"(?P<atom>{_ATOM_START})|(?P<run>{_RUN})|(?P<point>．\Z)")
_HOLDS: Final = {"atom": None, "run": HELD_RUN, "point": HELD_POINT}
_TERMINATORS_ONLY: Final = re.compile(f"{one_of(STRONG_TERMINATORS)}++")


def _end_of(pattern: re.Pattern[str], text: str, index: int) -> int:
    found = pattern.match(text, index)
    return found.end() if found is not None else index


def _dotted_length(text: str, start: int, end: int, before: int) -> int:
    """Go on counting letters and dots in turn, or give up for this word."""
    if before == NOT_DOTTED:
        return NOT_DOTTED
    pattern = _DOTTED_FROM_DOT if before % 2 else _DOTTED_FROM_LETTER
    return before + end - start if pattern.fullmatch(text, start, end) else NOT_DOTTED


def recognize_lexical(text: str, index: int, memo: LexicalMemo) -> tuple[int, LexicalMemo | None]:
    """A word, with its connectors, or a dotted abbreviation."""
    dotted = memo.dotted
    while True:
        end = _end_of(_WORD_BODY, text, index)
        dotted = _dotted_length(text, index, end, dotted)
        if end == len(text):
            return end, LexicalMemo("", dotted) if dotted != NOT_DOTTED else PLAIN_WORD
        if text[end] not in CONNECTORS:
            return end, None
        if text[end] == "." and dotted % 2 and dotted >= _DOTTED_BEFORE_LAST_DOT:
            index = end + 1
            dotted += 1
            continue
        if end + 1 == len(text):
            # IO-INV-102: a connector at the frontier may still join the next part of the word.
            return end, LexicalMemo(text[end], dotted)
        return end, None


def recognize_special(text: str, index: int, memo: SpecialMemo) -> tuple[int, SpecialMemo | None]:
    """A number or symbol, with its punctuation and units."""
    digit_seen, spaces = memo.digit_seen, memo.spaces
    while True:
        if not spaces:
            start, index = index, _end_of(_SPECIAL_BODY, text, index)
            digit_seen = digit_seen or _DIGIT.search(text, start, index) is not None
            if index == len(text):
                return index, AFTER_DIGIT if digit_seen else SpecialMemo(False, 0, "")
            if text[index] in AMBIGUOUS_PUNCTUATION:
                is_last = index + 1 == len(text)
                return index, SpecialMemo(digit_seen, 0, text[index]) if is_last else None
            if not digit_seen:
                return index, None
        end = index - spaces
        at = _end_of(_SPACES, text, index)
        spaces += at - index
        if at == len(text):
            return end, SpecialMemo(True, spaces, "")
        complete, at_frontier = match_unit(text, at)
        if complete is not None and at_frontier:
            # IO-INV-102: a complete unit at the frontier does not close the atom.
            end, _ = recognize_special(text, complete, AFTER_DIGIT)
            return end, SpecialMemo(True, 0, text[at:])
        is_spaced_sign = spaces > 0 and text[at] in SPACED_SIGNS
        if at_frontier:
            return len(text) if is_spaced_sign else end, SpecialMemo(True, spaces, text[at:])
        if complete is None and not is_spaced_sign:
            return end, None
        index, spaces = complete if complete is not None else at, 0


def run_goes_on(memo: NaturalMemo, packet: str) -> bool:
    """Whether the packet makes a held run longer and does not end it."""
    return memo.is_run and _TERMINATORS_ONLY.fullmatch(packet) is not None


def read_natural(
    text: str, start: int, final: bool, spans: list[Span]
) -> tuple[int, NaturalMemo | None]:
    """Append the spans of the natural text from `start` on.

    Returns where it stopped, and what to remember when text is held from there on.
    """
    while True:
        found = _NATURAL_STOP.search(text, start)
        if found is None or (found.lastgroup == "point" and final):
            spans.append(Span(text[start:], SpanKind.NATURAL))
            return len(text), None
        stop, end = found.span()
        if found.lastgroup == "run" and (end < len(text) or final):
            # IO-INV-102: one boundary for the whole run, once its end is certain.
            spans.append(Span(text[start:end], SpanKind.NATURAL, boundary_after=True))
            if end == len(text):
                return end, None
            start = end
            continue
        if stop > start:
            spans.append(Span(text[start:stop], SpanKind.NATURAL))
        return stop, _HOLDS[found.lastgroup or ""]
