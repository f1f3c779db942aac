"""Whether a listener understands what the embedded adapter says.

The thresholds are error rates that were measured, with room for another version of a listener;
what was measured stands in docs/reference/voices.md. Each listener is shown to discriminate:
noise and another sentence score near 100 %.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from services.tts.adapters.base import Samples, Utterance, VoiceAdapter
from services.tts.models.manifest import Group
from tests.conformance.adapters.cases import (
    EMBEDDED_PACKAGES,
    MODEL_DIR,
    embedded_lacking,
    files_lacking,
    packages_lacking,
    registered,
)
from tests.conformance.adapters.listening import ChineseListener, EnglishListener, distance
from tests.conformance.adapters.suite import speak

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning"),
]

RATE = 24000

# What stands in the text, and how it is read aloud.
ENGLISH = (
    ("The quick brown fox jumps over the lazy dog.", None),
    ("Please call me back tomorrow morning.", None),
    ("Dr. Smith paid $10.", "doctor smith paid ten dollars"),
    ("Mrs. Jones lives on Baker St. in London.", "misses jones lives on baker street in london"),
    ("He ran 10 km in 45 minutes.", "he ran ten kilometers in forty five minutes"),
    ("Prices grew 12.5% in May.", "prices grew twelve point five percent in may"),
    ("The train leaves at 8:45.", "the train leaves at eight forty five"),
    ("It is 80°F outside.", "it is eighty degrees fahrenheit outside"),
    ("Chapter 3 has 21 pages.", "chapter three has twenty one pages"),
    ("The box weighs 25 kg.", "the box weighs twenty five kilograms"),
    ("The files take 5 GB.", "the files take five gigabytes"),
    ("He was born on March 3rd.", "he was born on march third"),
    ("About 1,250 people came.", "about one thousand two hundred fifty people came"),
)
CHINESE = (
    ("今天天气很好，我们一起去公园散步吧。", None),
    ("人工智能正在改变我们的生活方式，也带来了新的挑战。", None),
    ("请问最近的地铁站怎么走？", None),
    ("学校图书馆每天早上八点开门，晚上十点关门。", None),
    ("会议定在2026年11月30日下午3点30分。", "会议定在二零二六年十一月三十日下午三点三十分"),
    ("金额为2026元，完成率12.5%。", "金额为两千零二十六元完成率百分之十二点五"),
    ("今天的最高温度是25℃。", "今天的最高温度是二十五摄氏度"),
    ("他跑了10 km，用了45分钟。", "他跑了十公里用了四十五分钟"),
    ("这家公司去年的收入是¥300万。", "这家公司去年的收入是三百万元"),
    ("第3章讲的是机器学习的基础知识。", "第三章讲的是机器学习的基础知识"),
)
MIXED = (
    ("我昨天在 YouTube 上看了一个很有意思的视频。", "我昨天在YouTube上看了一个很有意思的视频"),
    ("他每天都用 Python 写程序。", "他每天都用Python写程序"),
)

ENGLISH_ERRORS = 0.08
CHINESE_ERRORS = 0.06
MIXED_ERRORS = 0.25


@pytest.fixture(scope="module")
def english() -> EnglishListener:
    """The phoneme listener, its model inside its package."""
    if (problem := packages_lacking(("hama", "soxr"))) is not None:
        pytest.skip(problem)
    return EnglishListener()


@pytest.fixture(scope="module")
def chinese() -> ChineseListener:
    """The Whisper listener; its model comes with the group `test`."""
    problem = packages_lacking(("faster_whisper", "soxr")) or files_lacking((Group.TEST,))
    if problem is not None:
        pytest.skip(problem)
    return ChineseListener(MODEL_DIR / "whisper-base")


@pytest.fixture(scope="module")
def adapter() -> Iterator[VoiceAdapter]:
    """The embedded adapter with all of its voices."""
    if (problem := embedded_lacking()) is not None:
        pytest.skip(problem)
    made = registered("embedded")
    made.load()
    yield made
    made.close()


@pytest.fixture(scope="module")
def hibari(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VoiceAdapter]:
    """English alone, which needs no model files."""
    if (problem := packages_lacking(EMBEDDED_PACKAGES)) is not None:
        pytest.skip(problem)
    made = registered("embedded", tmp_path_factory.mktemp("empty"))
    made.load()
    yield made
    made.close()


def said(adapter: VoiceAdapter, text: str, voice: str) -> Samples:
    return speak(adapter, Utterance(text, voice, seed=1)).samples


def noise() -> Samples:
    return np.random.default_rng(0).normal(0, 0.1, 3 * RATE).clip(-1, 1).astype(np.float32)


def report(name: str, rates: dict[str, float]) -> float:
    """Print each sentence's rate, for the page that states them, and return the mean."""
    for text, rate in rates.items():
        print(f"{name} {rate:6.1%} {text}")
    mean = sum(rates.values()) / len(rates)
    print(f"{name} {mean:6.1%} mean")
    return mean


def test_english_is_understood(hibari: VoiceAdapter, english: EnglishListener) -> None:
    """WEIR-340: numbers, units, titles, dates and money included."""
    rates = {
        text: english.error_rate(said(hibari, text, "heart"), RATE, words or text)
        for text, words in ENGLISH
    }
    assert report("heart", rates) < ENGLISH_ERRORS


def test_english_is_understood_from_the_larger_voices(
    adapter: VoiceAdapter, english: EnglishListener
) -> None:
    """WEIR-340: the same sentences, window by window, an English and a Chinese voice."""
    for voice in ("af_heart", "zf_xiaobei"):
        rates = {
            text: english.error_rate(said(adapter, text, voice)[: 5 * RATE], RATE, words or text)
            for text, words in ENGLISH[:6]
        }
        assert report(voice, rates) < 0.3


def test_the_english_listener_hears_nothing_in_noise(
    hibari: VoiceAdapter, english: EnglishListener
) -> None:
    """WEIR-340: a listener that is pleased with anything would prove nothing."""
    text, other = ENGLISH[0][0], ENGLISH[1][0]
    assert english.error_rate(noise(), RATE, text) > 0.9
    assert english.error_rate(said(hibari, other, "heart"), RATE, text) > 0.6


@pytest.mark.parametrize("voice", ["zf_xiaobei", "zm_yunxi"])
def test_chinese_is_understood(adapter: VoiceAdapter, chinese: ChineseListener, voice: str) -> None:
    """WEIR-340: numbers, dates, units, percentages and money included."""
    rates = {
        text: chinese.error_rate(said(adapter, text, voice), RATE, words or text)
        for text, words in CHINESE
    }
    assert report(voice, rates) < CHINESE_ERRORS


def test_mixed_text_is_understood(adapter: VoiceAdapter, chinese: ChineseListener) -> None:
    """WEIR-340: one voice through both languages."""
    rates = {
        text: chinese.error_rate(said(adapter, text, "zf_xiaobei"), RATE, words)
        for text, words in MIXED
    }
    assert report("mixed", rates) < MIXED_ERRORS


def test_the_chinese_listener_hears_nothing_in_noise(
    adapter: VoiceAdapter, chinese: ChineseListener
) -> None:
    """WEIR-340: neither in noise nor in another sentence."""
    text, other = CHINESE[0][0], CHINESE[1][0]
    assert chinese.error_rate(noise(), RATE, text) > 0.8
    assert chinese.error_rate(said(adapter, other, "zf_xiaobei"), RATE, text) > 0.6


@pytest.mark.parametrize(
    ("expected", "heard", "edits"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "axc", 1), ("abc", "", 3), ("ab", "xaby", 2)],
)
def test_distance_counts_edits(expected: str, heard: str, edits: int) -> None:
    """WEIR-340: the measure itself."""
    assert distance(expected, heard) == edits
