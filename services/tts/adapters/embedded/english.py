"""English text to phonemes.

Owns: calling hibari's normalizer and G2P, and saying which source word each phoneme speaks. Does
not own: the readings themselves. Numbers, dates, units, titles and currencies are read by the
normalizer; one source word may become several spoken ones and the other way round (`alignment`).
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from typing import Any

from services.tts.adapters.embedded.alignment import UNASSIGNED, align
from services.tts.adapters.embedded.phonemes import PAUSE, Phonemes, is_silent, joined, of_word

_LOG = logging.getLogger(__name__)
_LONG_NUMBER = re.compile(r"[0-9]{13,}|[0-9]+(?:,[0-9]{3}){5,}")
_PHONEME_MARKUP = re.compile(r"\]\(/")


class EnglishReader:
    """Reads English. Safe to use from several threads: the G2P is called one at a time."""

    def __init__(self, g2p: Any) -> None:
        from hibari.g2p.normalize import normalize

        self._g2p = g2p
        self._normalize = normalize
        self._lock = threading.Lock()

    def read(self, text: str, words: Sequence[tuple[int, str]]) -> Phonemes:
        """Return the phonemes of `text`. `words` are (index, word as it stands in `text`)."""
        tokens = self._tokens(text)
        spoken = [token for token in tokens if _audible(token)]
        owners = align(
            [word for _, word in words],
            [token.text for token in spoken],
            lambda place: len([t for t in self._tokens(words[place][1]) if _audible(t)]),
        )
        by_token = dict(zip(map(id, spoken), owners, strict=True))
        parts: list[Phonemes] = []
        for token in tokens:
            owner = by_token.get(id(token), UNASSIGNED)
            parts.append(of_word(token.phonemes, PAUSE if owner < 0 else words[owner][0]))
            if token.whitespace:
                parts.append(of_word(" ", PAUSE))
        return joined(parts)

    def _tokens(self, text: str) -> list[Any]:
        # The package has no words for such numbers: read digit by digit, as one would aloud.
        text = _LONG_NUMBER.sub(lambda match: " ".join(match.group().replace(",", "")), text)
        # Text is text: what looks like the package's markup for raw phonemes is read, not obeyed.
        text = _PHONEME_MARKUP.sub("] (/", text)
        try:
            return self._phonemized(text)
        except Exception:  # faults of the package have no common type
            # One odd word must not silence the sentence.
            return [token for word in text.split() for token in self._one_word(word)]

    def _one_word(self, word: str) -> list[Any]:
        try:
            return self._phonemized(f"{word} ")
        except Exception as error:  # as above
            _LOG.warning("a word was left out: the G2P failed with %s", type(error).__name__)
            return []

    def _phonemized(self, text: str) -> list[Any]:
        with self._lock:
            tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(self._normalize(text)))
        for token in tokens:
            token.phonemes = token.phonemes or ""
        if tokens and text[-1:].isspace():
            tokens[-1].whitespace = " "
        return list(tokens)


def _audible(token: Any) -> bool:
    return not all(map(is_silent, token.phonemes))
