"""The character classes of the profile, as data.

Owns: which characters belong to which class. Does not own: what a recognizer does with a class.
Enforces: IO-INV-102, the part that says the tables are finite; they are frozen under this name.
"""

from __future__ import annotations

import re
from typing import Final

ASCII_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
FULL_WIDTH_LETTERS: Final = (
    "ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴＵＶＷＸＹＺ"
    "ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ"
)
LETTERS: Final = ASCII_LETTERS + FULL_WIDTH_LETTERS
DIGITS: Final = "0123456789０１２３４５６７８９"
SUPERSCRIPTS: Final = "²³"

# Join two parts of a word when a letter, a digit or a superscript follows.
CONNECTORS: Final = ".@'_+-"

LEADING_SYMBOLS: Final = "$¥￥€£₽+-−—±~≈<>≤≥=×÷*/\\|@#^&_%％°℃℉"
BODY_SYMBOLS: Final = LEADING_SYMBOLS + SUPERSCRIPTS + "()[]{}（）【】'\""
AMBIGUOUS_PUNCTUATION: Final = ".,:．，："
LEADING_DECIMAL_POINTS: Final = ".．"
# Signs that a number may be parted from by white space although they are no unit of the table.
SPACED_SIGNS: Final = "%％℃℉°"
# U+FE0F asks for the emoji form, U+20E3 draws the key around the character before it.
KEYCAP_MARKS: Final = "\ufe0f\u20e3"

STRONG_TERMINATORS: Final = ".!?。！？…\n"


def one_of(characters: str) -> str:
    """The regular expression that matches exactly one of the characters."""
    return f"[{re.escape(characters)}]"
