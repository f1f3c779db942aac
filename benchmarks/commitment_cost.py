"""What commitment costs: time per character, and how it grows with the length of what is held.

Owns: the figures for the profile `zh_en_special_v1`. Does not own: a verdict, the targets stand in
the documentation. It prints JSON:

- `us_per_character`: mixed Chinese and English text through the built-in frontend, in packets of
  four characters, best of several repeats.
- `growth`: for each kind of text that can be held for long, fed one character at a time, the time
  per character at length 4,000 divided by that at length 400. A replay of the pending text on
  each feed gives about 10, a cost that is linear in the text gives about 1.

Run `python -m benchmarks.commitment_cost [--repeats N]`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice

from services.edge.text.registry import get_streaming_text_frontend_factory
from services.edge.text.zh_en_special_v1 import PROFILE

SHORT = 400
LONG = 4_000
PACKET_CHARACTERS = 4

MIXED = (
    "金额为2026元，比去年增长12.5%。The new version v2.1 ships today, at 10:30 p.m. sharp! "
    "温度80°F，重量25 kg；请在2026年12月8日之前回复 first.last@mail.example.com 或致电。"
    "Is it 3.14, or 22/7? 我们明天再讨论这个问题……好的。It weighs about 1,000 m² — roughly.\n"
)

# Each starts with what makes the scanner hold, and goes on with what keeps it holding.
HELD_SHAPES: dict[str, tuple[str, str]] = {
    "word": ("", "abcdefghij"),
    "word_with_connectors": ("", "ab-c_d.e"),
    "dotted_abbreviation": ("", "a."),
    "full_width_word": ("", "ａｂＣ"),
    "number": ("", "1234567890"),
    "special_with_points": ("", "1,2.3:4"),
    "special_without_digit": ("", "-/—+"),
    "terminator_run": ("", "!?…。"),
    "dots": ("", "."),
    "newlines": ("", "\n"),
    "white_space_after_number": ("25", " \t\u3000"),
    "chained_units": ("2026", "年12月"),
    "unit_prefixes": ("2", "千瓦时平方米"),
    "keycaps": ("1", "\ufe0f\u20e3"),
}


def sample(shape: tuple[str, str], length: int) -> str:
    """A text of the shape with exactly `length` characters."""
    head, body = shape
    return head + "".join(islice(cycle(body), length - len(head)))


def seconds_to_speak(text: str, packet_characters: int) -> float:
    """Feed the whole text to a fresh frontend and finish."""
    frontend = get_streaming_text_frontend_factory(PROFILE)(
        language="Chinese", max_pending_characters=len(text)
    )
    packets = [
        text[start : start + packet_characters] for start in range(0, len(text), packet_characters)
    ]
    began = time.perf_counter()
    for packet in packets:
        frontend.feed(packet)
    frontend.finish()
    return time.perf_counter() - began


def best_of(repeats: int, measure: Callable[[], float]) -> float:
    """The least disturbed of several measurements."""
    return min(measure() for _ in range(repeats))


def growth(shape: tuple[str, str], repeats: int) -> dict[str, float]:
    """Time per character at both lengths, taken in turn so that both see the same machine."""
    short, long = sample(shape, SHORT), sample(shape, LONG)
    shorts, longs = [], []
    for _ in range(repeats):
        # As many characters each: one long utterance against ten short ones.
        shorts.append(sum(seconds_to_speak(short, 1) for _ in range(LONG // SHORT)))
        longs.append(seconds_to_speak(long, 1))
    return {
        f"us_per_character_at_{SHORT}": round(min(shorts) / LONG * 1e6, 3),
        f"us_per_character_at_{LONG}": round(min(longs) / LONG * 1e6, 3),
        "ratio": round(min(longs) / min(shorts), 3),
    }


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure the cost of text commitment.")
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each figure")
    repeats = parser.parse_args().repeats
    mixed = MIXED * 20
    mixed_seconds = best_of(repeats, lambda: seconds_to_speak(mixed, PACKET_CHARACTERS))
    shapes = {name: growth(shape, repeats) for name, shape in HELD_SHAPES.items()}
    figures = {
        "profile": PROFILE,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packet_characters": PACKET_CHARACTERS,
        "mixed_text_characters": len(mixed),
        "us_per_character": round(mixed_seconds / len(mixed) * 1e6, 3),
        "growth": shapes,
        "worst_growth_ratio": max(figure["ratio"] for figure in shapes.values()),
    }
    json.dump(figures, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
