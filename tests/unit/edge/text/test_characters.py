"""The character classes of `zh_en_special_v1`, code point by code point."""

from __future__ import annotations

import re
import sys

import pytest

from services.edge.text.policy import CommitmentPolicy
from services.edge.text.zh_en_special_v1 import PROFILE, characters

FULL_WIDTH = 0xFEE0  # from an ASCII character to its full-width form

CLASSES = [
    ("DIGITS", [*range(0x30, 0x3A), *range(0xFF10, 0xFF1A)]),
    (
        "LETTERS",
        [
            *range(0x41, 0x5B),
            *range(0x61, 0x7B),
            *range(0x41 + FULL_WIDTH, 0x5B + FULL_WIDTH),
            *range(0x61 + FULL_WIDTH, 0x7B + FULL_WIDTH),
        ],
    ),
    ("ASCII_LETTERS", [*range(0x41, 0x5B), *range(0x61, 0x7B)]),
    ("SUPERSCRIPTS", [0xB2, 0xB3]),
    ("CONNECTORS", [0x2E, 0x40, 0x27, 0x5F, 0x2B, 0x2D]),
    (
        "LEADING_SYMBOLS",
        [
            0x24,
            0xA5,
            0xFFE5,
            0x20AC,
            0xA3,
            0x20BD,
            0x2B,
            0x2D,
            0x2212,
            0x2014,
            0xB1,
            0x7E,
            0x2248,
            0x3C,
            0x3E,
            0x2264,
            0x2265,
            0x3D,
            0xD7,
            0xF7,
            0x2A,
            0x2F,
            0x5C,
            0x7C,
            0x40,
            0x23,
            0x5E,
            0x26,
            0x5F,
            0x25,
            0xFF05,
            0xB0,
            0x2103,
            0x2109,
        ],
    ),
    ("AMBIGUOUS_PUNCTUATION", [0x2E, 0x2C, 0x3A, 0xFF0E, 0xFF0C, 0xFF1A]),
    ("LEADING_DECIMAL_POINTS", [0x2E, 0xFF0E]),
    ("SPACED_SIGNS", [0x25, 0xFF05, 0x2103, 0x2109, 0xB0]),
    ("KEYCAP_MARKS", [0xFE0F, 0x20E3]),
    ("STRONG_TERMINATORS", [0x2E, 0x21, 0x3F, 0x3002, 0xFF01, 0xFF1F, 0x2026, 0x0A]),
]
BODY_ONLY = [0xB2, 0xB3, 0x28, 0x29, 0x5B, 0x5D, 0x7B, 0x7D, 0xFF08, 0xFF09, 0x3010, 0x3011]
BODY_ONLY += [0x27, 0x22]


@pytest.mark.parametrize(("name", "code_points"), CLASSES, ids=[name for name, _ in CLASSES])
def test_a_class_has_exactly_these_members(name: str, code_points: list[int]) -> None:
    """IO-INV-102: the tables of a profile are finite and frozen."""
    members: str = getattr(characters, name)
    assert sorted(map(ord, members)) == sorted(code_points)


def test_body_symbols_are_the_leading_ones_and_closing_ones() -> None:
    """IO-INV-102: brackets, quotes and superscripts go on with an atom but never start one."""
    added = set(characters.BODY_SYMBOLS) - set(characters.LEADING_SYMBOLS)
    assert {ord(symbol) for symbol in added} == set(BODY_ONLY)
    assert set(characters.LEADING_SYMBOLS) < set(characters.BODY_SYMBOLS)


@pytest.mark.parametrize("character", ["．", ";", "；", "、", "‥", "․", "؟", "।", "\r", "\u2028"])
def test_other_marks_are_no_strong_terminators(character: str) -> None:
    """IO-INV-102: only the listed terminators make a boundary; newline is U+000A alone."""
    spans = CommitmentPolicy(PROFILE).feed(f"好{character}好", final=True).spans
    assert [span.boundary_after for span in spans] == [False]


def kind_of(character: str) -> str:
    """The kind of the atom that the character starts."""
    return CommitmentPolicy(PROFILE).feed(character, final=True).spans[0].kind


def test_every_start_is_classified() -> None:
    """IO-INV-102: letters start words, digits and leading symbols specials, the rest is natural."""
    for code in range(0x3100):
        character = chr(code)
        expected = "natural"
        if character in characters.LETTERS:
            expected = "lexical"
        elif character in characters.DIGITS + characters.LEADING_SYMBOLS:
            expected = "special"
        assert kind_of(character) == expected, hex(code)


@pytest.mark.parametrize("character", ["é", "ß", "д", "ə", "²", "½", "٣", "Ⅻ", "\u212a", "ǆ"])
def test_letters_and_digits_outside_the_tables_are_natural(character: str) -> None:
    """IO-INV-102: text outside the finite tables is released at once."""
    policy = CommitmentPolicy(PROFILE)
    assert policy.feed(character).spans[0].kind == "natural"
    assert policy.pending_text == ""


def test_white_space_is_what_python_calls_white_space() -> None:
    """IO-INV-102: white space after a number is `str.isspace`, U+3000 and NBSP included."""
    white_space = re.compile(r"\s")
    for code in range(sys.maxunicode + 1):
        assert chr(code).isspace() == (white_space.match(chr(code)) is not None), hex(code)


def test_white_space_after_a_number_holds_except_newline() -> None:
    """IO-INV-102: any white space but U+000A may still be followed by a unit."""
    spaces = [chr(code) for code in range(0x3001) if chr(code).isspace()]
    assert {"\u3000", "\u00a0", "\u2028", "\r", "\n"} <= set(spaces)
    for space in spaces:
        policy = CommitmentPolicy(PROFILE)
        policy.feed(f"5{space}")
        assert policy.pending_text == ("\n" if space == "\n" else f"5{space}"), hex(ord(space))
