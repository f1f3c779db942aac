"""What the demonstration says, and the pieces in which it arrives.

Owns: the texts, and cutting them like a language model streams its tokens. Does not own: what the
edge makes of the pieces; that no cut changes the reading is what the demonstration shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN_INTERVAL_S = 0.02
MAX_TOKEN_CHARACTERS = 5


@dataclass(frozen=True, slots=True)
class Script:
    """One text, the language to ask for, and the stem of the files it becomes."""

    name: str
    language: str
    text: str


SCRIPTS = (
    Script(
        "english",
        "English",
        "Your order of 3.5 kg of apples comes to $12.50. "
        "It ships on March 5, 2026, at 9:30 a.m. sharp! "
        "Version 2.1.0 starts in 0.8 seconds, e.g. on a U.S. server. "
        "Outside it is 25 °C, so don't forget some water.",
    ),
    Script(
        "chinese",
        "Chinese",
        "您的订单总价是￥128.50，重量2.5公斤，预计2026年12月5日送到。"
        "版本v2.1.3把延迟降低了35%！"
        "现在室温25℃，跑完5公里只用了28分钟……真不错。",
    ),
)


def tokens(text: str, seed: int = 7) -> Iterator[str]:
    """Cut `text` into pieces of one to five characters, the same ones for the same seed."""
    sizes = random.Random(seed)
    position = 0
    while position < len(text):
        size = sizes.randint(1, MAX_TOKEN_CHARACTERS)
        yield text[position : position + size]
        position += size
