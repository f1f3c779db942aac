"""The profile `zh_en_special_v1` in its simplest form: the rules, replayed from the start.

Owns: an oracle. It shares no code with the scanner, reads one character after the other, and
scans pending text and packet again on every feed. It is slow on purpose and used by tests only.
Enforces: nothing; it is what IO-INV-102 is compared with.
"""

from __future__ import annotations

import re

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + "".join(
    chr(code) for first in (0xFF21, 0xFF41) for code in range(first, first + 26)
)
ASCII_LETTERS = LETTERS[:52]
DIGITS = "0123456789" + "".join(chr(code) for code in range(0xFF10, 0xFF1A))
LEADING = r"$ ¥ ￥ € £ ₽ + - − — ± ~ ≈ < > ≤ ≥ = × ÷ * / \ | @ # ^ & _ % ％ ° ℃ ℉".replace(" ", "")
BODY = LEADING + "² ³ ( ) [ ] { } （ ） 【 】 ' \"".replace(" ", "")
AMBIGUOUS = ".,:．，："
TERMINATORS = ".!?。！？…\n"
KEYCAP = "\N{VARIATION SELECTOR-16}\N{COMBINING ENCLOSING KEYCAP}"
UNIT_TABLE = """
    年 月 日 日元 号 时 小时 点 分 分钟 秒 周 季 度 摄氏度 华氏度 元 角 圆 美元 欧元 人民币 米 米²
    米³ 公里 千米 厘米 厘米² 厘米³ 毫米 微米 纳米 平方米 平方公里 立方米 立方厘米 克 公斤 千克 斤
    吨 升 毫升 伏 安 瓦 千瓦 千瓦时 赫兹 兆赫兹 吉赫兹 成 折 倍 amu c cm cm2 cm3 cm² cm³ db dm
    dm2 dm3 dm² dm³ f ft g gb ghz gw gwh h ha hz kb kg khz km km2 km3 km² km³ l lb m m2 m3 m² m³
    mb mhz min ml mm ms mw nm nd oz rd s st tb th v w °c °f
"""
UNITS = {unit.casefold() for unit in UNIT_TABLE.split()}
LONGEST_UNIT = max(map(len, UNITS))

Released = tuple[str, str, bool]
"""Text, kind, and whether a boundary follows."""


def at(text: str, index: int) -> str:
    """The character at `index`, or nothing."""
    return text[index] if 0 <= index < len(text) else ""


def among(character: str, characters: str) -> bool:
    """Whether there is a character, and it is one of these."""
    return character != "" and character in characters


def starts_special(text: str, index: int) -> bool:
    """Whether a special atom starts at `index`."""
    character = at(text, index)
    if among(character, DIGITS + LEADING):
        return True
    if not among(character, ".．") or not among(at(text, index + 1), DIGITS):
        return False
    return not (character == "." and at(text, index - 1) == ".")


def word_end(text: str, start: int, final: bool) -> int | None:
    """Where the word ends, None while that is open."""
    end = start
    while end < len(text):
        character, following = text[end], at(text, end + 1)
        if among(character, LETTERS + DIGITS + "²³"):
            end += 1
        elif among(character, ".@'_+-"):
            is_dotted = re.fullmatch(r"([A-Za-z]\.){2,}", text[start : end + 1]) is not None
            if not (among(following, LETTERS + DIGITS + "²³") or is_dotted):
                return end if following or final else None
            end += 1
        else:
            return end
    return end if final else None


def unit_ends(text: str, start: int) -> tuple[int | None, bool]:
    """The end of the longest unit at `start`, and whether the text may end inside a unit."""
    best = None
    for end in range(start + 1, min(len(text), start + LONGEST_UNIT) + 1):
        if text[start:end].casefold() in UNITS:
            best = end
    rest = text[start:].casefold()
    return best, any(unit.startswith(rest) for unit in UNITS)


def special_end(text: str, start: int, final: bool) -> int | None:
    """Where the number or symbol ends, None while that is open."""
    end, digit_seen = start, False
    while end < len(text):
        character, following = text[end], at(text, end + 1)
        digit_seen = digit_seen or among(character, DIGITS)
        if among(character, DIGITS + ASCII_LETTERS + BODY + KEYCAP):
            end += 1
        elif among(character, AMBIGUOUS):
            if not among(following, LETTERS + DIGITS):
                return end if following or final else None
            end += 1
        elif not digit_seen:
            return end
        else:
            unit_at = end
            while at(text, unit_at).isspace() and at(text, unit_at) != "\n":
                unit_at += 1
            if unit_at == len(text):
                return end if final else None
            best, may_grow = unit_ends(text, unit_at)
            if best is not None:
                end = best
            elif may_grow and not final:
                return None
            elif unit_at > end and among(text[unit_at], "%％℃℉°"):
                end = unit_at
            else:
                return end
    return end if final else None


def natural_spans(text: str, start: int, final: bool) -> tuple[list[Released], int, bool]:
    """The spans of the natural text at `start`, where it stops, and whether a tail is held."""
    stop = start + 1
    while stop < len(text) and not (among(text[stop], LETTERS) or starts_special(text, stop)):
        stop += 1
    at_frontier = stop == len(text) and not final
    spans: list[Released] = []
    begin = index = start
    while index < stop:
        run = index
        while run < stop and text[run] in TERMINATORS:
            run += 1
        if run == index:
            index += 1
        elif run == stop and at_frontier:
            spans.append((text[begin:index], "natural", False))
            return spans, index, True
        else:
            spans.append((text[begin:run], "natural", True))
            begin = index = run
    held = at_frontier and begin < stop and text[stop - 1] == "．"
    stop -= held
    spans.append((text[begin:stop], "natural", False))
    return spans, stop, held


def replay(text: str, final: bool) -> tuple[list[Released], str]:
    """Scan from the start: what is released, and what stays pending."""
    spans: list[Released] = []
    index = 0
    while index < len(text):
        if among(text[index], LETTERS):
            end, kind = word_end(text, index, final), "lexical"
        elif starts_special(text, index):
            end, kind = special_end(text, index, final), "special"
        else:
            natural, index, held = natural_spans(text, index, final)
            spans.extend(span for span in natural if span[0])
            if held:
                break
            continue
        if end is None:
            break
        spans.append((text[index:end], kind, False))
        index = end
    return spans, text[index:]


class ReferencePolicy:
    """Feeds by full replay."""

    def __init__(self) -> None:
        self.pending = ""

    def feed(self, packet: str, final: bool = False) -> list[Released]:
        """Replay what is pending together with the packet."""
        spans, self.pending = replay(self.pending + packet, final)
        return spans
