"""Cutting raw text into the words that captions show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tts.adapters.words import is_spoken, source_words

CASES = [
    ("", []),
    (" \t\n", []),
    ("...!? 😀 —", []),
    ("Hello, world!", ["Hello", "world"]),
    ("don't “stop”", ["don't", "stop"]),
    ("well-known and/or", ["well-known", "and/or"]),
    ("one—two…three", ["one", "two", "three"]),
    ("U.S. e.g. Dr. end.", ["U.S.", "e.g.", "Dr", "end"]),
    ("$9.99 12.5% #1 @me -5 (80°F)", ["$9.99", "12.5%", "#1", "@me", "-5", "80°F"]),
    ("127.0.0.1:8000, a@b.com;", ["127.0.0.1:8000", "a@b.com"]),
    ("你好，世界。", ["你", "好", "世", "界"]),
    ("2026年12月", ["2026", "年", "12", "月"]),
    ("用GPT-4吧", ["用", "GPT-4", "吧"]),
    ("温度25℃。", ["温", "度", "25℃"]),
    ("𠮷野家〇々", ["𠮷", "野", "家", "〇", "々"]),
    ("ひらカナー", ["ひ", "ら", "カ", "ナ", "ー"]),
    ("مرحبا بك", ["مرحبا", "بك"]),
    ("a\x00b", ["a\x00b"]),
]


@pytest.mark.parametrize(("text", "words"), CASES)
def test_words_are_what_a_caption_highlights(text: str, words: list[str]) -> None:
    """IO-INV-102: Han by character, everything else by white space, without punctuation around."""
    assert [word.text for word in source_words(text)] == words


@given(st.text())
def test_words_are_slices_in_order_and_hold_every_letter_and_digit(text: str) -> None:
    """IO-INV-102: nothing is normalized, nothing that sounds is left out, nothing overlaps."""
    reached = 0
    covered: set[int] = set()
    for word in source_words(text):
        assert word.start >= reached
        assert word.text == text[word.start : word.end]
        assert any(map(is_spoken, word.text))
        covered.update(range(word.start, word.end))
        reached = word.end
    assert {i for i, character in enumerate(text) if is_spoken(character)} <= covered
