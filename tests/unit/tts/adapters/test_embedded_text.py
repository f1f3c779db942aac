"""How the embedded adapter takes a text apart: sentences, scripts, English runs, alignment."""

from __future__ import annotations

import io
import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.log_output import logging_to
from services.runtime.logging import LogSettings
from services.tts.adapters.embedded.alignment import align, shares
from services.tts.adapters.embedded.english import EnglishReader
from services.tts.adapters.embedded.kokoro_voice import SHORTEST_WINDOW_FRAMES, windows
from services.tts.adapters.embedded.omissions import Omissions
from services.tts.adapters.embedded.phonemes import Phonemes, joined, of_word, pause
from services.tts.adapters.embedded.routing import (
    MAX_SENTENCE_CHARACTERS,
    Script,
    english_runs,
    script_of,
    sentences,
)


def split_latin(text: str) -> list[str]:
    """Stripped pieces in order, as the voice's own splitter gives them."""
    return [piece.strip() for piece in re.split(r"(?<=[.!?])\s+", text) if piece.strip()]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("One. Two!", ["One.", "Two!"]),
        ("他说“好。”然后走了。", ["他说“好。”", "然后走了。"]),
        ("第一句。Second one. 第三句！", ["第一句。", "Second one.", "第三句！"]),
        ("一行\n二行", ["一行", "二行"]),
    ],
)
def test_a_text_is_read_sentence_by_sentence(text: str, pieces: list[str]) -> None:
    """WEIR-324: closing quotes stay with their sentence, both scripts' stops count."""
    assert [s.text for s in sentences(text, split_latin)] == pieces


@given(st.text(alphabet="ab 1,.!?。！，\n中文", max_size=900))
def test_sentences_hold_every_character_that_sounds_once_and_are_bounded(text: str) -> None:
    """WEIR-324: cutting loses nothing, repeats nothing, and no step is unbounded."""
    reached = 0
    kept: list[int] = []
    for sentence in sentences(text, split_latin):
        assert sentence.start >= reached
        assert len(sentence.text) <= MAX_SENTENCE_CHARACTERS
        reached = sentence.start + len(sentence.text)
        assert text[sentence.start : reached] == sentence.text
        kept += range(sentence.start, reached)
    assert {i for i, c in enumerate(text) if c.isalnum()} <= set(kept)


def test_a_long_sentence_is_cut_at_a_clause_and_never_in_a_number() -> None:
    """WEIR-324: the cut falls where a reader would pause."""
    clause = "这里有1,234,567个苹果，"
    pieces = [s.text for s in sentences(clause * 60, split_latin)]
    assert len(pieces) > 1
    assert all(piece.endswith("，") for piece in pieces)


@pytest.mark.parametrize(
    ("text", "numbers_are_chinese", "script"),
    [
        ("Hello", True, Script.ENGLISH),
        ("Hello 世界", False, Script.CHINESE),
        ("12.5%", False, Script.ENGLISH),
        ("12.5%", True, Script.CHINESE),
        ("!!", False, Script.ENGLISH),
        ("𠮷", False, Script.CHINESE),
    ],
)
def test_the_text_chooses_its_reader(text: str, numbers_are_chinese: bool, script: Script) -> None:
    """WEIR-325: Han makes a sentence Chinese; digits alone follow the request."""
    assert script_of(text, numbers_are_chinese) is script


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("我用GPT-4写代码", ["GPT-4"]),
        ("版本v2.1，发a@b.com", ["v2.1", "a@b.com"]),
        ("他说I was born in 1999 in New York。", ["I was born in 1999 in New York"]),
        ("重25 kg，快80km/h", []),
        ("有25 apples吃", ["apples"]),
        ("共5 mins", ["mins"]),
        ("iPhone 15很贵", ["iPhone"]),
        ("CPU 80，GPU 90", ["CPU", "GPU"]),
        ("全是中文", []),
    ],
)
def test_english_inside_chinese_is_found_and_units_stay_with_their_number(
    text: str, english: list[str]
) -> None:
    """WEIR-325: what an English reader should read, and nothing of what a Chinese one should."""
    runs = list(english_runs(text))
    assert [text[start:end] for start, end, is_english in runs if is_english] == english
    assert "".join(text[start:end] for start, end, _ in runs) == text


def test_a_long_run_without_structure_is_found_quickly() -> None:
    """WEIR-325: no text makes the search slow; this one ends or the test does not."""
    for text in ("a-" * 20_000, "a 1 " * 10_000, "1 " * 20_000, "a" * 40_000):
        assert "".join(text[s:e] for s, e, _ in english_runs(text)) == text


@pytest.mark.parametrize(
    ("weights", "count", "dealt"),
    [
        ([1, 1], 2, [0, 1]),
        ([2, 1], 3, [0, 0, 1]),
        ([1, 0, 1], 2, [0, 2]),
        ([1, 1], 4, [0, 0, 1, 1]),
        ([0, 0], 2, [0, 1]),
        ([3], 2, [0, 0]),
    ],
)
def test_pieces_are_dealt_out_by_weight(weights: list[int], count: int, dealt: list[int]) -> None:
    """WEIR-326: exact when the weights add up, in proportion otherwise."""
    assert shares(weights, count) == dealt


@pytest.mark.parametrize(
    ("words", "pieces", "weights", "owners"),
    [
        (["paid", "now"], ["paid", "now"], [1, 1], [0, 1]),
        (["at", "7:30", "pm"], ["at", "seven", "thirty", "P.M."], [1, 2, 1], [0, 1, 1, 2]),
        (["5", "March"], ["the", "fifth", "of", "March"], [1, 1], [0, 0, 0, 1]),
        (["$9", "million"], ["9", "million", "dollars"], [1, 1], [0, 1, 1]),
        ([], ["x"], [], [-1]),
        (["x"], [], [1], []),
    ],
)
def test_spoken_pieces_find_their_words(
    words: list[str], pieces: list[str], weights: list[int], owners: list[int]
) -> None:
    """WEIR-326: equal words anchor, what was rewritten between them is dealt out in order."""
    assert align(words, pieces, weights.__getitem__) == tuple(owners)


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_alignment_never_goes_back(words: list[str], pieces: list[str]) -> None:
    """WEIR-326: word times stay in the order of the text."""
    owners = align(words, pieces, lambda _: 1)
    assert list(owners) == sorted(owners)
    assert len(owners) == len(pieces)


def test_phonemes_are_joined_with_single_spaces() -> None:
    """WEIR-326: words keep their index through joining; pauses belong to none."""
    parts = [pause(" "), of_word("ab", 0), pause(" "), pause(" "), of_word("c", 1), pause(". ")]
    assert joined(parts) == Phonemes("ab c.", (0, 0, -1, 1, -1))


@given(st.text(alphabet="ab .,", max_size=120), st.integers(1, 12))
def test_chunks_are_bounded_and_lose_nothing(symbols: str, limit: int) -> None:
    """WEIR-324: whatever the pauses, a chunk fits the model."""
    phonemes = Phonemes(symbols, tuple(range(len(symbols))))
    chunks = list(phonemes.chunks(limit))
    assert "".join(chunk.symbols for chunk in chunks) == symbols
    assert sum((chunk.words for chunk in chunks), ()) == phonemes.words
    assert all(0 < len(chunk.symbols) <= limit for chunk in chunks)


def test_a_chunk_ends_at_the_best_pause_in_reach() -> None:
    """WEIR-324: a sentence end before a comma, a comma before a space."""
    assert next(pause("aaaa. bb, cc dd").chunks(10)).symbols == "aaaa. bb,"
    assert next(pause("aaaaaaa. b, c").chunks(12)).symbols == "aaaaaaa."
    assert next(pause("aaaa aaaa aaaa").chunks(10)).symbols == "aaaa aaaa "


@pytest.mark.parametrize(("symbols", "audible"), [("", False), (" .,!“”", False), (".a", True)])
def test_punctuation_alone_is_not_audible(symbols: str, audible: bool) -> None:
    """WEIR-327: text without phonemes reaches no voice."""
    assert pause(symbols).audible is audible


@given(st.integers(0, 50), st.integers(1, 700))
def test_windows_cover_a_chunk_without_stumps(first: int, length: int) -> None:
    """WEIR-328: every frame is decoded once, and a window has enough to listen to."""
    cut = list(windows(first, first + length))
    assert cut[0][0] == first
    assert cut[-1][1] == first + length
    assert all(one[1] == other[0] for one, other in pairwise(cut))
    assert all(end - start >= min(length, SHORTEST_WINDOW_FRAMES) for start, end in cut)


class _Token:
    """A token as the G2P package makes it."""

    def __init__(self, text: str) -> None:
        self.text, self.phonemes, self.whitespace = text, text.lower(), " "


class _FragileG2P:
    """Fails on a word with an X, and on numbers beyond its scale as the package does."""

    def tokenize(self, text: str) -> list[_Token]:
        if "X" in text or re.search("[0-9]{4}", text):
            raise IndexError(text)
        return [_Token(word) for word in text.split()]

    def phonemize_tokens(self, tokens: list[_Token]) -> list[_Token]:
        return tokens


@pytest.mark.parametrize(
    ("text", "symbols", "words"),
    [
        ("ab cd", "ab cd", (0, 0, -1, 1, 1)),
        ("ab X cd", "ab cd", (0, 0, -1, 2, 2)),
        ("X", "", ()),
        ("ab 1234 cd", "ab 1 2 3 4 cd", (0, 0, -1, 1, -1, 1, -1, 1, -1, 1, -1, 2, 2)),
    ],
)
def test_a_word_that_the_g2p_fails_on_does_not_silence_its_sentence(
    text: str, symbols: str, words: tuple[int, ...]
) -> None:
    """WEIR-332: the other words are spoken and keep their index, a number is read by its digits."""
    pytest.importorskip("hibari")
    reader = EnglishReader(_FragileG2P())
    assert reader.read(text, list(enumerate(text.split()))) == Phonemes(symbols, words)


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (("ab cd", "1234"), []),
        (("aX b Xc", "Xa"), [(3, 0, ["IndexError"])]),
    ],
)
def test_words_left_out_are_told_once_a_segment_and_without_their_text(
    texts: tuple[str, ...], lines: list[tuple[int, int, list[str]]]
) -> None:
    """WEIR-070: the log has a count and the type of the exception, in the form a process writes."""
    pytest.importorskip("hibari")
    reader, omissions, log = EnglishReader(_FragileG2P()), Omissions(), io.StringIO()
    with logging_to("tts", LogSettings(format="json"), log):
        for text in texts:
            reader.read(text, list(enumerate(text.split())), omissions)
        omissions.log()
    written = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [
        (line["words_left_out"], line["clauses_not_normalized"], line["causes"]) for line in written
    ] == lines
    assert {line["event"] for line in written} <= {"text_not_fully_read"}
    assert not any(text in log.getvalue() for text in ("aX", "Xc", "Xa"))


def test_each_number_of_a_list_keeps_its_word() -> None:
    """WEIR-326: one word that is several spoken ones takes none of its neighbours'."""
    pytest.importorskip("hibari")
    read = EnglishReader(_FragileG2P()).read("a 1,2 2 b", list(enumerate(["a", "1,2", "2", "b"])))
    assert read == Phonemes("a 1, 2 2 b", (0, -1, 1, 1, -1, 1, -1, 2, -1, 3))


@pytest.mark.parametrize(
    "text",
    [
        "1" * 5000,
        "$" + "9" * 40,
        "1,000,000,000,000,000,000,000,000,000,000,000,000",
        "[a](/b/)",
        "1," * 60 + "1",
    ],
)
def test_english_that_breaks_the_g2p_package_is_still_read(text: str) -> None:
    """WEIR-332: numbers of any length, and markup that is only text."""
    g2p = pytest.importorskip("hibari.g2p")
    words = [(0, text)]
    assert EnglishReader(g2p.G2P()).read(text, words).audible
