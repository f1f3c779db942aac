"""The units of the profile, and the longest match over them.

Owns: the unit tables and their matching. Does not own: where a unit may stand.
Enforces: IO-INV-102, the part that says a suffix stays pending while it can still become another
unit: `match_unit` tells a complete unit from a prefix that touches the frontier.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_CJK: Final = """
    年 月 日 日元 号 时 小时 点 分 分钟 秒 周 季 度 摄氏度 华氏度 元 角 圆 美元 欧元 人民币
    米 米² 米³ 公里 千米 厘米 厘米² 厘米³ 毫米 微米 纳米 平方米 平方公里 立方米 立方厘米
    克 公斤 千克 斤 吨 升 毫升 伏 安 瓦 千瓦 千瓦时 赫兹 兆赫兹 吉赫兹 成 折 倍
"""
_ASCII: Final = """
    amu c cm cm2 cm3 cm² cm³ db dm dm2 dm3 dm² dm³ f ft g gb ghz gw gwh h ha hz kb kg khz
    km km2 km3 km² km³ l lb m m2 m3 m² m³ mb mhz min ml mm ms mw nm nd oz rd s st tb th v w
    °c °f
"""
CJK_UNITS: Final = tuple(_CJK.split())
ASCII_UNITS: Final = tuple(_ASCII.split())
UNITS: Final = CJK_UNITS + ASCII_UNITS


@dataclass(slots=True)
class _Node:
    """A place in the tree of case-folded units: what may follow, and whether a unit ends here."""

    following: dict[str, _Node] = field(default_factory=dict)
    complete: bool = False


def _plant(units: tuple[str, ...]) -> _Node:
    root = _Node()
    for unit in units:
        node = root
        for character in unit.casefold():
            node = node.following.setdefault(character, _Node())
        node.complete = True
    return root


_ROOT: Final = _plant(UNITS)


def _step(node: _Node, character: str) -> _Node | None:
    """Follow one source character, which may fold to several."""
    found: _Node | None = node
    for folded in character.casefold():
        found = found.following.get(folded) if found is not None else None
    return found


def match_unit(text: str, start: int) -> tuple[int | None, bool]:
    """Match a unit at `start`, which must be inside the text.

    Returns the end of the longest complete unit (None when there is none), and whether
    everything from `start` to the end of the text is a unit or the beginning of one.
    """
    node, complete, index = _ROOT, None, start
    while index < len(text):
        following = _step(node, text[index])
        if following is None:
            return complete, False
        node, index = following, index + 1
        if node.complete:
            complete = index
    # IO-INV-102: what touches the frontier may still grow into a longer unit.
    return complete, True
