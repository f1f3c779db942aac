"""The recognizer rules of `zh_en_special_v1`: what is consumed, what closes, what is held."""

from __future__ import annotations

import pytest

from services.edge.text.policy import CommitmentPolicy
from services.edge.text.zh_en_special_v1 import PROFILE

MARK = {"natural": "n", "lexical": "l", "special": "s"}


def atoms(text: str) -> str:
    """All spans of a finished text, as `kind:text`, a bar after a boundary."""
    spans = CommitmentPolicy(PROFILE).feed(text, final=True).spans
    return " ".join(
        f"{MARK[span.kind]}:{span.source_text}{'|' if span.boundary_after else ''}"
        for span in spans
    )


def held(text: str) -> str:
    """What stays pending of a text that goes on."""
    policy = CommitmentPolicy(PROFILE)
    policy.feed(text)
    return policy.pending_text


LEXICAL = [
    ("a letter starts it, digits go on", "中abc12中", "n:中 l:abc12 n:中"),
    ("full-width letters and digits", "Ａｂ１中", "l:Ａｂ１ n:中"),
    ("superscripts go on", "m²x³,", "l:m²x³ n:,"),
    ("each connector joins", "a.b@c'd_e+f-g,", "l:a.b@c'd_e+f-g n:,"),
    ("a connector joins a digit", "v2.1,", "l:v2.1 n:,"),
    ("a connector joins a superscript", "a-²,", "l:a-² n:,"),
    ("a connector joins a full-width letter", "a.Ｂ,", "l:a.Ｂ n:,"),
    ("two connectors do not join", "a--b", "l:a s:--b"),
    ("a trailing dot is a terminator", "Mr. x", "l:Mr n:.| n:  l:x"),
    ("a trailing apostrophe is natural", "a' b", "l:a n:'  l:b"),
    ("two pairs of letter and dot", "e.g. x", "l:e.g. n:  l:x"),
    ("more pairs", "U.S.A.,", "l:U.S.A. n:,"),
    ("one pair is no abbreviation", "U. S", "l:U n:.| n:  l:S"),
    ("a longer part breaks the pairs", "Ph.D. x", "l:Ph.D n:.| n:  l:x"),
    ("the whole atom must be pairs", "a-U.S. x", "l:a-U.S n:.| n:  l:x"),
    ("a digit breaks the pairs", "v.1. x", "l:v.1 n:.| n:  l:x"),
    ("full-width letters are no pairs", "Ｕ.Ｓ. x", "l:Ｕ.Ｓ n:.| n:  l:x"),
    ("a full-width dot is no connector", "a．b", "l:a n:． l:b"),
    ("an abbreviation goes on", "U.S.-led,", "l:U.S.-led n:,"),
    ("a dot after an abbreviation", "e.g.. x", "l:e.g. n:.| n:  l:x"),
    ("a comma closes", "a,b", "l:a n:, l:b"),
]

SPECIAL = [
    ("a digit starts it, ASCII letters go on", "3ab中", "s:3ab n:中"),
    ("full-width digits", "２０26中", "s:２０26 n:中"),
    ("full-width letters do not go on", "3ＡＢ中", "s:3 l:ＡＢ n:中"),
    ("a point before a full-width letter is consumed", "3.Ａ", "s:3. l:Ａ"),
    ("a leading symbol starts it", "$5中", "s:$5 n:中"),
    ("a symbol alone", "前——后", "n:前 s:—— n:后"),
    ("body symbols go on", "5(a)[b]{c}'\"（d）【e】。", "s:5(a)[b]{c}'\"（d）【e】 n:。|"),
    ("a bracket does not start it", "(5)", "n:( s:5)"),
    ("a leading decimal point starts it", "x .5 y", "l:x n:  s:.5 n:  l:y"),
    ("a full-width leading decimal point", "中．5中", "n:中 s:．5 n:中"),
    ("not after another dot", "...5", "n:...| s:5"),
    ("but after another terminator", "!.5", "n:!| s:.5"),
    ("a full-width point after a dot", "中.．5", "n:中.| s:．5"),
    ("a decimal", "12.5，中", "s:12.5 n:，中"),
    ("each ambiguous mark joins", "1.2,3:4．5，6：7;", "s:1.2,3:4．5，6：7 n:;"),
    ("an ambiguous mark before a letter joins", "1:a;", "s:1:a n:;"),
    ("two ambiguous marks do not join", "1..2", "s:1 n:..| s:2"),
    ("a trailing dot is a terminator", "1. ", "s:1 n:.| n: "),
    ("a keycap", "按1\ufe0f\u20e3中", "n:按 s:1\ufe0f\u20e3 n:中"),
    ("a keycap without variation selector", "1\u20e3中", "s:1\u20e3 n:中"),
    ("a variation selector without keycap", "1\ufe0f中", "s:1\ufe0f n:中"),
    ("chained units", "2026年12月8日，", "s:2026年12月8日 n:，"),
    ("a unit and a denominator", "25℃/h，", "s:25℃/h n:，"),
    ("two units", "1元人民币，", "s:1元人民币 n:，"),
    ("white space before a unit", "25 \t\u00a0kg，", "s:25 \t\u00a0kg n:，"),
    ("white space before a chained unit", "5元 3角，", "s:5元 n:  s:3角 n:，"),
    ("white space before a sign", "5 %，", "s:5 % n:，"),
    ("each sign", "5 ％ ℃ ℉ °，", "s:5 ％ ℃ ℉ ° n:，"),
    ("a sign that is no unit", "5 °x，", "s:5 °x n:，"),
    ("white space without unit closes", "5  中", "s:5 n:  中"),
    ("a unit that more letters follow", "3 more x", "s:3 more n:  l:x"),
    ("no unit across a newline", "5\nkg", "s:5 n:\n| l:kg"),
    ("a newline in the white space", "5 \n kg", "s:5 n: \n| n:  l:kg"),
    ("no white space without a number", "$ kg", "s:$ n:  l:kg"),
    ("a prefix that comes to nothing", "2平局", "s:2 n:平局"),
    ("a spaced prefix that comes to nothing", "2 平局", "s:2 n: 平局"),
    ("a prefix at the end of input", "2平", "s:2 n:平"),
    ("a spaced sign at the end of input", "2 °", "s:2 °"),
    ("white space at the end of input", "2 ", "s:2 n: "),
    ("punctuation at the end of input", "2,", "s:2 n:,"),
]

NATURAL = [
    ("up to the next start", "你好abc", "n:你好 l:abc"),
    ("a run is one boundary", "好！？…。\n再", "n:好！？…。\n| n:再"),
    ("white space divides runs", "好! !", "n:好!| n: !|"),
    ("a run right at an atom", "a!b", "l:a n:!| l:b"),
    ("a full-width point makes no boundary", "好．再", "n:好．再"),
    ("astral characters and combining marks", "😀e\u0301🇨🇳", "n:😀 l:e n:\u0301🇨🇳"),
]

HELD = [
    ("natural text is not held", "你好，", ""),
    ("the run at the frontier", "你好。！", "。！"),
    ("a trailing full-width point", "你好．", "．"),
    ("only the last of two points", "你好．．", "．"),
    ("a run, then a point", "你好。．", "．"),
    ("a word", "好ab", "ab"),
    ("a word with a trailing connector", "好ab-", "ab-"),
    ("a connector that joins nothing", "好ab'，", ""),
    ("punctuation after a symbol", "好ab-，", "-，"),
    ("a symbol after a word", "好ab--", "--"),
    ("an abbreviation", "好U.S.", "U.S."),
    ("a dot after an abbreviation", "好U.S..", "U.S.."),
    ("a number", "好25", "25"),
    ("trailing ambiguous punctuation", "好25：", "25："),
    ("white space after a number", "好25 \u3000", "25 \u3000"),
    ("white space after a symbol", "好$ ", ""),
    ("a unit prefix after white space", "好25  兆赫", "25  兆赫"),
    ("a variation selector", "好1\ufe0f", "1\ufe0f"),
    ("a newline after a number", "好25\n", "\n"),
]


def named(rows: list[tuple[str, str, str]]) -> list[object]:
    """The rows as parameters that carry their name."""
    return [pytest.param(text, expected, id=name) for name, text, expected in rows]


@pytest.mark.parametrize(("text", "expected"), named(LEXICAL + SPECIAL + NATURAL))
def test_atoms_reach_as_far_as_their_rule_says(text: str, expected: str) -> None:
    """IO-INV-102: the recognizer rules are finite and frozen."""
    assert atoms(text) == expected


@pytest.mark.parametrize(("text", "expected"), named(LEXICAL + SPECIAL + NATURAL))
def test_one_character_at_a_time_gives_the_same_atoms(text: str, expected: str) -> None:
    """IO-INV-102: packet seams neither close an atom nor move a boundary."""
    policy = CommitmentPolicy(PROFILE)
    rebuilt: list[tuple[str, str, bool]] = []
    for packet in [*text, None]:
        update = policy.feed(packet or "", final=packet is None)
        for span in update.spans:
            goes_on = rebuilt and rebuilt[-1][1] == "natural" == span.kind and not rebuilt[-1][2]
            before = rebuilt.pop()[0] if goes_on else ""
            rebuilt.append((before + span.source_text, span.kind, span.boundary_after))
    assert " ".join(f"{MARK[k]}:{t}{'|' if b else ''}" for t, k, b in rebuilt) == expected


@pytest.mark.parametrize(("text", "expected"), named(HELD))
def test_the_suffix_that_could_change_is_held(text: str, expected: str) -> None:
    """IO-INV-102: a suffix stays pending while a continuation can change its reading."""
    assert held(text) == expected


def test_text_before_a_held_tail_is_released() -> None:
    """IO-INV-102: only the tail of natural text waits."""
    update = CommitmentPolicy(PROFILE).feed("你好。")
    assert [(span.source_text, span.boundary_after) for span in update.spans] == [("你好", False)]
    assert update.pending_text == "。"
