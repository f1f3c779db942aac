"""Texts and packets for the commitment laws.

Owns: Hypothesis strategies that keep to the characters which the profile treats specially.
Does not own: the laws.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

UNITS = [
    "年",
    "月",
    "元",
    "日元",
    "千瓦时",
    "平方米",
    "立方厘米",
    "摄氏度",
    "兆赫兹",
    "kg",
    "°C",
    "ghz",
]
UNIT_PREFIXES = ["分", "钟", "平方", "立方厘", "摄氏", "千", "人民", "兆", "k", "°", "gh", "厘"]
CHARACTERS = [
    *"0159０５",
    *"aAgkmhzUSＡｂ",
    "\u017f",  # long s and
    "\ufb06",  # the st ligature fold to units
    *".．,:，：",
    *".!?。！？…\n",
    *" \t\u3000\u00a0\r",
    *"$+-—%℃/@'_&²³()\"（】",
    "\ufe0f",
    "\u20e3",
    *"中文；、”",
    "😀",
    "\u200d",
    "\u0301",
    "\U0001f1e8",
]
CHUNKS = [
    *UNITS,
    *UNIT_PREFIXES,
    "U.S.",
    "e.g.",
    "...",
    "12.5",
    "5 ",
    "25  ",
    "1\ufe0f\u20e3",
    "。！",
]

texts = st.lists(
    st.one_of(st.sampled_from(CHARACTERS), st.sampled_from(CHUNKS), st.sampled_from(CHARACTERS)),
    max_size=14,
).map("".join)
short_texts = texts.map(lambda text: text[:7])


def cut(text: str, places: list[int]) -> list[str]:
    """The packets between the places."""
    edges = [0, *sorted(places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@st.composite
def packets(draw: st.DrawFn) -> list[str]:
    """A text in packets of any size, empty ones among them."""
    text = draw(texts)
    if draw(st.booleans()):
        return list(text)
    places = draw(st.lists(st.integers(0, len(text)), max_size=8))
    return cut(text, places)
