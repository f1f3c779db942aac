"""Chinese and mixed text to phonemes.

Owns: reading numbers, dates, units and currencies as Chinese (wetext), Han characters by word
(jieba, pypinyin, misaki's pinyin-to-IPA), English runs through the English reader; and which source
word each phoneme speaks. Does not own: the readings themselves. Enforces: IO-INV-102 (the rewritten
text never leaves this module; times are told of the raw words).
"""

from __future__ import annotations

import importlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from services.tts.adapters.embedded.alignment import shares
from services.tts.adapters.embedded.english import EnglishReader
from services.tts.adapters.embedded.omissions import Omissions
from services.tts.adapters.embedded.phonemes import PAUSE, Phonemes, joined, of_word, pause
from services.tts.adapters.embedded.routing import english_runs, is_han
from services.tts.adapters.words import SourceWord

_MARKS = {
    **dict.fromkeys("，、,", ", "),
    **dict.fromkeys("。．.", ". "),
    **dict.fromkeys("！!", "! "),
    **dict.fromkeys("？?", "? "),
    **dict.fromkeys("：:", ": "),
    **dict.fromkeys("；;", "; "),
    **dict.fromkeys("—–", "—"),
    **dict.fromkeys("…⋯", "… "),
    **dict.fromkeys("“‘「『《【", " “"),
    **dict.fromkeys("”’」』》】", "” "),
    **dict.fromkeys("（(", " ("),
    **dict.fromkeys("）)", ") "),
}
"""Marks of the source -> symbols of the voices' alphabet."""

# The normalizer does not know a currency before an amount in ten thousands: it is moved behind.
_CURRENCIES = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_SCALED_MONEY = re.compile(
    r"([¥￥$€£])[ ]?([0-9][0-9,.]*)[ ]?([百千]?[万亿])(?:美元|欧元|英镑|元)?"
)

# The normalizer's cost grows faster than its input, so it is given a clause at a time. A full stop
# or comma between digits is part of a number.
_CLAUSE = re.compile(r"[，。；！？、…\n]+|[,.;!?](?![0-9])")
_RUN = re.compile(r"[A-Za-zÀ-ɏ0-9'’]+(?:[ -][A-Za-zÀ-ɏ0-9'’]+)*")


def load_chinese_reader(english: EnglishReader) -> ChineseReader:
    """Load the normalizer and the word list: about two seconds."""
    # Neither is typed; importing them by name keeps that in this one place.
    wetext = importlib.import_module("wetext")
    jieba = importlib.import_module("jieba")
    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
    normalizer = wetext.Normalizer(lang="zh", operator="tn")
    normalizer.normalize_with_mapping("1")  # reads its tables on first use
    return ChineseReader(normalizer, jieba.lcut, english)


class ChineseReader:
    """Reads Chinese with English in it. Safe to use from several threads.

    `normalizer` has wetext's `normalize_with_mapping`; `segment` cuts Han text into words.
    """

    def __init__(
        self, normalizer: Any, segment: Callable[[str], list[str]], english: EnglishReader
    ) -> None:
        from misaki.zh import ZHG2P
        from pypinyin import Style, lazy_pinyin

        self._normalizer = normalizer
        self._segment = segment
        self._english = english
        self._to_ipa: Callable[[str], str] = ZHG2P.py2ipa
        self._lock = threading.Lock()
        self._readings: Callable[[str], list[str]] = lambda word: lazy_pinyin(
            word, style=Style.TONE3, neutral_tone_with_five=True, errors="ignore"
        )

    def read(
        self,
        text: str,
        words: Sequence[tuple[int, SourceWord]],
        omissions: Omissions | None = None,
    ) -> Phonemes:
        """Return the phonemes of `text`. `words` are (index, word with its place in `text`).

        `omissions` counts what cannot be read.
        """
        missed = omissions or Omissions()
        owners = [PAUSE] * len(text)
        for index, word in words:
            owners[word.start : word.end] = [index] * (word.end - word.start)
        parts: list[Phonemes] = []
        for start, end, is_english in english_runs(text):
            if is_english:
                english = self._read_english(text, owners, (start, end), missed)
                parts += [pause(" "), english, pause(" ")]
            else:
                parts += self._read_clauses(text, owners, (start, end), missed)
        return joined(parts)

    def _read_english(
        self, text: str, owners: list[int], span: tuple[int, int], missed: Omissions
    ) -> Phonemes:
        start, end = span
        runs: list[tuple[int, str]] = []
        for position in range(start, end):
            owner = owners[position]
            if owner != PAUSE and runs and runs[-1][0] == owner:
                runs[-1] = (owner, runs[-1][1] + text[position])
            elif owner != PAUSE:
                runs.append((owner, text[position]))
        return self._english.read(text[start:end], runs, missed)

    def _read_clauses(
        self, text: str, owners: list[int], span: tuple[int, int], missed: Omissions
    ) -> Iterator[Phonemes]:
        for first, last in _clauses(text, *span):
            clause, clause_owners = text[first:last], owners[first:last]
            yield from self._read_rewritten(*self._normalize(clause, clause_owners, missed), missed)

    def _normalize(
        self, clause: str, owners: list[int], missed: Omissions
    ) -> tuple[str, list[int]]:
        """Return the clause as it is read aloud, and the word of each of its characters."""
        text, spoken, position = "", list[int](), 0
        for money in _SCALED_MONEY.finditer(clause):
            before = slice(position, money.start())
            plain, plain_owners = self._rewrite(clause[before], owners[before], missed)
            with self._lock:
                amount = self._normalizer.normalize(money[2] + money[3] + _CURRENCIES[money[1]])
            text += plain + amount
            spoken += plain_owners + self._deal(clause, owners, money.span(), len(amount))
            position = money.end()
        plain, plain_owners = self._rewrite(clause[position:], owners[position:], missed)
        return text + plain, spoken + plain_owners

    def _rewrite(self, clause: str, owners: list[int], missed: Omissions) -> tuple[str, list[int]]:
        if not any(map(str.isdigit, clause)):
            return clause, owners
        try:
            with self._lock:
                result = self._normalizer.normalize_with_mapping(clause)
        except Exception as error:  # the package's own type, for texts it cannot trace
            missed.note_clause(error)
            return clause, owners
        text: list[str] = []
        spoken: list[int] = []
        position = 0
        for mapping in result.mappings:
            text.append(clause[position : mapping.input_start])
            spoken += owners[position : mapping.input_start]
            text.append(mapping.output_text)
            span = (mapping.input_start, mapping.input_end)
            spoken += self._deal(clause, owners, span, len(mapping.output_text))
            position = mapping.input_end
        return "".join(text) + clause[position:], spoken + owners[position:]

    def _deal(self, clause: str, owners: list[int], span: tuple[int, int], count: int) -> list[int]:
        """Give each of the `count` characters of a rewritten stretch its word."""
        words = list(dict.fromkeys(owners[i] for i in range(*span) if owners[i] != PAUSE))
        if len(words) <= 1:
            return (words or [PAUSE]) * count
        weights = []
        for word in words:
            alone = "".join(clause[i] for i in range(*span) if owners[i] == word)
            with self._lock:
                weights.append(len(self._normalizer.normalize(alone)))
        return [words[share] for share in shares(weights, count)]

    def _read_rewritten(
        self, text: str, owners: list[int], missed: Omissions
    ) -> Iterator[Phonemes]:
        position = 0
        while position < len(text):
            end = position
            while end < len(text) and is_han(text[end]):
                end += 1
            if end > position:
                yield from self._read_han(text[position:end], owners[position:end])
            elif run := _RUN.match(text, position):
                end = run.end()
                yield pause(" ")
                yield self._read_english(text, owners, (position, end), missed)
                yield pause(" ")
            else:
                end = position + 1
                yield pause(_MARKS.get(text[position], " "))
            position = end

    def _read_han(self, text: str, owners: list[int]) -> Iterator[Phonemes]:
        position = 0
        for word in self._segment(text):
            for pinyin in self._pinyin(word):
                yield of_word(self._ipa(pinyin), owners[position])
                position += 1
            yield pause(" ")

    def _pinyin(self, word: str) -> list[str]:
        """Return one reading for each character, empty where there is none."""
        readings = self._readings(word)
        if len(readings) == len(word):
            return readings
        return ["".join(self._readings(character)[:1]) for character in word]

    def _ipa(self, pinyin: str) -> str:
        if not pinyin:
            return ""
        try:
            return self._to_ipa(pinyin).replace(chr(815), "")
        except (ValueError, KeyError, IndexError):
            return ""  # an interjection without a regular syllable (`hm`)


def _clauses(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _CLAUSE.finditer(text, start, end):
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end
