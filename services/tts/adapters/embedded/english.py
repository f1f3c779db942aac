"""English text to phonemes.

Owns: calling hibari's normalizer and G2P, and saying which source word each phoneme speaks. Does
not own: the readings themselves. Numbers, dates, units, titles and currencies are read by the
normalizer; one source word may become several spoken ones and the other way round (`alignment`).
Enforces: WEIR-341 (numbers in a list are not one number), WEIR-332 (one odd word does not silence
its sentence).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from services.tts.adapters.embedded.alignment import UNASSIGNED, align
from services.tts.adapters.embedded.omissions import Omissions
from services.tts.adapters.embedded.phonemes import PAUSE, Phonemes, is_silent, joined, of_word

_COMMA_JOINED = re.compile(r"\d+(?:,\d+)+")
# Decimals are not grouped, and no grouped number begins with a zero.
_GROUPED = re.compile(r"(?<!\d\.)(?!0)\d{1,3}(?:,\d{3})+")
_DIGIT = re.compile(r"\d")
_LONG_NUMBER = re.compile(r"[0-9]{13,}|[0-9]+(?:,[0-9]{3}){5,}")
_PHONEME_MARKUP = re.compile(r"\]\(/")


class EnglishReader:
    """Reads English. Safe to use from several threads: the G2P is called one at a time."""

    def __init__(self, g2p: Any) -> None:
        from hibari.g2p.normalize import normalize

        self._g2p = g2p
        self._normalize = normalize
        self._lock = threading.Lock()

    def read(
        self, text: str, words: Sequence[tuple[int, str]], omissions: Omissions | None = None
    ) -> Phonemes:
        """Return the phonemes of `text`. `words` are (index, word as it stands in `text`).

        `omissions` counts the words that cannot be read.
        """
        tokens = self._tokens(text, omissions or Omissions())
        spoken = [token for token in tokens if _audible(token)]
        # A list like `1,2,3` is one word of the source; its numbers are aligned one by one.
        pieces = [(i, piece) for i, word in words for piece in _listed(word).split()]
        owners = align(
            [piece for _, piece in pieces],
            [token.text for token in spoken],
            lambda at: len([t for t in self._tokens(pieces[at][1], Omissions()) if _audible(t)]),
        )
        by_token = dict(zip(map(id, spoken), owners, strict=True))
        parts: list[Phonemes] = []
        for token in tokens:
            owner = by_token.get(id(token), UNASSIGNED)
            parts.append(of_word(token.phonemes, PAUSE if owner < 0 else pieces[owner][0]))
            if token.whitespace:
                parts.append(of_word(" ", PAUSE))
        return joined(parts)

    def _tokens(self, text: str, omissions: Omissions) -> list[Any]:
        text = _listed(text)
        # The package has no words for such numbers: read digit by digit, as one would aloud.
        text = _LONG_NUMBER.sub(lambda match: " ".join(match.group().replace(",", "")), text)
        # Text is text: what looks like the package's markup for raw phonemes is read, not obeyed.
        text = _PHONEME_MARKUP.sub("] (/", text)
        try:
            return self._phonemized(text)
        except Exception:  # faults of the package have no common type
            # One odd word must not silence the sentence.
            return [token for word in text.split() for token in self._one_word(word, omissions)]

    def _one_word(self, word: str, omissions: Omissions) -> list[Any]:
        try:
            return self._phonemized(f"{word} ")
        except Exception as error:  # as above
            failed = error
        by_digit = _DIGIT.sub(r" \g<0> ", word)
        if by_digit != word:
            try:
                return self._phonemized(f"{by_digit.strip()} ")
            except Exception as error:  # as above
                failed = error
        omissions.note_word(failed)
        return []

    def _phonemized(self, text: str) -> list[Any]:
        with self._lock:
            tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(self._normalize(text)))
        for token in tokens:
            token.phonemes = token.phonemes or ""
        if tokens and text[-1:].isspace():
            tokens[-1].whitespace = " "
        return list(tokens)


def _listed(text: str) -> str:
    """Put a space after each comma between digits that does not group the digits of one number."""

    # WEIR-341: the package drops every comma, so `1,2` would be twelve.
    def spaced(match: re.Match[str]) -> str:
        one_number = _GROUPED.fullmatch(text, *match.span())
        return match.group() if one_number else match.group().replace(",", ", ")

    return _COMMA_JOINED.sub(spaced, text)


def _audible(token: Any) -> bool:
    return not all(map(is_silent, token.phonemes))
