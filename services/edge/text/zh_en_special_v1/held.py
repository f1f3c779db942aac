"""The suffix that is held back, and what a recognizer remembers about it.

Owns: the pending text as a chain of the packets it came in, the recognizers' memory, the names of
the rules that hold text. Does not own: when text is held (the recognizers) or how much of it is
allowed (the policy).
Enforces: IO-INV-102, the part that says a failed call changes nothing: every record here is
immutable, so a scan that is thrown away leaves the one before it as it was.

An atom recognizer remembers a `tail`: the last few characters, which have to be read again together
with what follows. The tail is bounded, however long the held text is, and white space after a
number, which is not bounded, is remembered by its length. This makes a feed cost what its packet
costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from services.edge.text.zh_en_special_v1.characters import (
    AMBIGUOUS_PUNCTUATION,
    KEYCAP_MARKS,
)
from services.edge.text.zh_en_special_v1.units import match_unit

# Adding a packet is one small allocation, and a chain handed out before keeps its value.
Chain: TypeAlias = "tuple[Chain | None, str]"


@dataclass(frozen=True, slots=True)
class NaturalMemo:
    """A held terminator run, or else a held full-width decimal point."""

    is_run: bool


@dataclass(frozen=True, slots=True)
class LexicalMemo:
    """An open word.

    `tail` is a connector that nothing has followed yet. `dotted` is the length of the word while
    it is nothing but single ASCII letters and dots in turn, and `NOT_DOTTED` afterwards.
    """

    tail: str
    dotted: int


@dataclass(frozen=True, slots=True)
class SpecialMemo:
    """An open special atom.

    `tail` is a punctuation mark that nothing has followed yet, or the unit or unit prefix at the
    frontier. `spaces` counts the white space in front of the tail that is not part of the atom
    unless a unit follows it.
    """

    digit_seen: bool
    spaces: int
    tail: str


Memo: TypeAlias = NaturalMemo | LexicalMemo | SpecialMemo

HELD_RUN: Final = NaturalMemo(True)
HELD_POINT: Final = NaturalMemo(False)
NOT_DOTTED: Final = -1
NEW_WORD: Final = LexicalMemo("", 0)
PLAIN_WORD: Final = LexicalMemo("", NOT_DOTTED)
NEW_SPECIAL: Final = SpecialMemo(False, 0, "")
AFTER_DIGIT: Final = SpecialMemo(True, 0, "")


class HoldRule(StrEnum):
    """The rules that hold text back."""

    TERMINATOR_RUN = "terminator_run"
    DECIMAL_POINT = "decimal_point"
    OPEN_WORD = "open_word"
    CONNECTOR = "connector"
    OPEN_SPECIAL = "open_special"
    PUNCTUATION = "punctuation"
    SPACE_AFTER_NUMBER = "space_after_number"
    UNIT_PREFIX = "unit_prefix"
    KEYCAP = "keycap"


RESOLUTIONS: Final[dict[HoldRule, str]] = {
    HoldRule.TERMINATOR_RUN: "a character that is no strong terminator",
    HoldRule.DECIMAL_POINT: "any character: a digit makes it a decimal",
    HoldRule.OPEN_WORD: "a character that cannot extend the word",
    HoldRule.CONNECTOR: "any character: a letter, digit or superscript goes on with the word",
    HoldRule.OPEN_SPECIAL: "a character that cannot extend the number or symbol",
    HoldRule.PUNCTUATION: "any character: a letter or digit goes on with the number or symbol",
    HoldRule.SPACE_AFTER_NUMBER: "a newline, or characters that show whether a unit follows",
    HoldRule.UNIT_PREFIX: "characters that complete the unit or rule it out",
    HoldRule.KEYCAP: "any character: the keycap mark belongs to the atom",
}


@dataclass(frozen=True, slots=True)
class Held:
    """What is pending after a scan: never empty."""

    chain: Chain
    length: int
    memo: Memo

    def text(self) -> str:
        """The pending text. Costs time in proportion to its length."""
        packets: list[str] = []
        link: Chain | None = self.chain
        while link is not None:
            link, packet = link
            packets.append(packet)
        packets.reverse()
        return "".join(packets)

    def rule(self) -> HoldRule:
        """The rule that holds it."""
        memo = self.memo
        if isinstance(memo, NaturalMemo):
            return HoldRule.TERMINATOR_RUN if memo.is_run else HoldRule.DECIMAL_POINT
        if isinstance(memo, LexicalMemo):
            return HoldRule.CONNECTOR if memo.tail else HoldRule.OPEN_WORD
        return self._special_rule(memo)

    def _special_rule(self, memo: SpecialMemo) -> HoldRule:
        if not memo.tail:
            if memo.spaces:
                return HoldRule.SPACE_AFTER_NUMBER
            last_packet = self.chain[1]
            is_keycap = last_packet[-1] == KEYCAP_MARKS[0]
            return HoldRule.KEYCAP if is_keycap else HoldRule.OPEN_SPECIAL
        if memo.tail in AMBIGUOUS_PUNCTUATION:
            return HoldRule.PUNCTUATION
        is_complete = match_unit(memo.tail, 0)[0] == len(memo.tail)
        return HoldRule.OPEN_SPECIAL if is_complete else HoldRule.UNIT_PREFIX
