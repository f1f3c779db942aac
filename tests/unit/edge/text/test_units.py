"""The unit tables of `zh_en_special_v1` and how they are matched."""

from __future__ import annotations

import pytest

from services.edge.text.policy import CommitmentPolicy
from services.edge.text.zh_en_special_v1 import PROFILE
from services.edge.text.zh_en_special_v1.units import ASCII_UNITS, CJK_UNITS, UNITS, match_unit

# Written out once more, so that a change of the table needs a change here.
LISTED_CJK = (
    "年 月 日 日元 号 时 小时 点 分 分钟 秒 周 季 度 摄氏度 华氏度 元 角 圆 美元 欧元 人民币 "
    "米 米² 米³ 公里 千米 厘米 厘米² 厘米³ 毫米 微米 纳米 平方米 平方公里 立方米 立方厘米 "
    "克 公斤 千克 斤 吨 升 毫升 伏 安 瓦 千瓦 千瓦时 赫兹 兆赫兹 吉赫兹 成 折 倍"
)
LISTED_ASCII = (
    "amu c cm cm2 cm3 cm² cm³ db dm dm2 dm3 dm² dm³ f ft g gb ghz gw gwh h ha hz kb kg khz km km2 "
    "km3 km² km³ l lb m m2 m3 m² m³ mb mhz min ml mm ms mw nm nd oz rd s st tb th v w °c °f"
)
PREFIXES = sorted({unit[:size] for unit in UNITS for size in range(1, len(unit))} - set(UNITS))


def test_every_unit_is_listed() -> None:
    """IO-INV-102: the unit tables hold these units and no other, each once."""
    assert sorted(CJK_UNITS) == sorted(LISTED_CJK.split())
    assert sorted(ASCII_UNITS) == sorted(LISTED_ASCII.split())
    assert len(set(UNITS)) == len(UNITS) == 112


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("gap", ["", " ", "\u3000\t"])
def test_a_unit_belongs_to_its_number(unit: str, gap: str) -> None:
    """IO-INV-102: a number, optional white space and a unit are one special atom."""
    spans = CommitmentPolicy(PROFILE).feed(f"7{gap}{unit}。", final=True).spans
    assert [(span.source_text, span.kind) for span in spans] == [
        (f"7{gap}{unit}", "special"),
        ("。", "natural"),
    ]


@pytest.mark.parametrize("unit", UNITS)
def test_a_complete_unit_at_the_frontier_stays_pending(unit: str) -> None:
    """IO-INV-102: a complete unit does not close the atom while more may follow."""
    policy = CommitmentPolicy(PROFILE)
    assert policy.feed(f"7 {unit}").spans == ()
    assert policy.pending_text == f"7 {unit}"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("gap", ["", " "])
def test_a_unit_may_come_one_character_at_a_time(unit: str, gap: str) -> None:
    """IO-INV-102: also when a shorter unit was complete before, as in 分 and 分钟."""
    policy = CommitmentPolicy(PROFILE)
    for character in f"7{gap}{unit}":
        assert policy.feed(character).spans == ()
    spans = policy.feed("。", final=True).spans
    assert spans[0].source_text == f"7{gap}{unit}"


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("gap", ["", " "])
def test_a_proper_prefix_of_a_unit_is_held(prefix: str, gap: str) -> None:
    """IO-INV-102: a proper prefix at the frontier may still become a unit."""
    policy = CommitmentPolicy(PROFILE)
    assert policy.feed(f"7{gap}{prefix}").spans == ()
    assert policy.pending_text == f"7{gap}{prefix}"


@pytest.mark.parametrize(
    ("text", "end", "at_frontier"),
    [
        ("千", None, True),
        ("千瓦", 2, True),
        ("千瓦时", 3, True),
        ("千瓦和", 2, False),
        ("日元。", 2, False),
        ("日出", 1, False),
        ("立方厘", None, True),
        ("立方厘米²", 4, False),
        ("米²", 2, True),
        ("km2", 3, True),
        ("km2 ", 3, False),
        ("gh", 1, True),
        ("ghx", 1, False),
        ("x", None, False),
        ("中", None, False),
    ],
)
def test_the_longest_complete_unit_wins(text: str, end: int | None, at_frontier: bool) -> None:
    """IO-INV-102: longest match, and whether it touches the frontier."""
    assert match_unit(text, 0) == (end, at_frontier)


@pytest.mark.parametrize("unit", ["KG", "Km²", "°C", "GHz", "MIN", "\u212ag", "\u017f", "\ufb06"])
def test_units_ignore_case_as_casefold_does(unit: str) -> None:
    """IO-INV-102: Kelvin sign, long s and the st ligature fold like the letters they stand for."""
    spans = CommitmentPolicy(PROFILE).feed(f"7 {unit}，", final=True).spans
    assert spans[0].source_text == f"7 {unit}"


def test_no_unit_without_a_number() -> None:
    """IO-INV-102: a unit belongs to an atom only once a digit was seen."""
    assert CommitmentPolicy(PROFILE).feed("-元", final=True).spans[0].source_text == "-"
    assert CommitmentPolicy(PROFILE).feed("-1元", final=True).spans[0].source_text == "-1元"
