"""How numbers, units and mixed text are read aloud, and to which source word a reading belongs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from services.tts.adapters.embedded.chinese import ChineseReader, load_chinese_reader
from services.tts.adapters.embedded.english import EnglishReader
from services.tts.adapters.embedded.phonemes import Phonemes
from services.tts.adapters.words import source_words
from tests.conformance.adapters.cases import EMBEDDED_PACKAGES, packages_lacking

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning"),
]


@pytest.fixture(scope="module")
def english() -> EnglishReader:
    """The reader with the package's own lexicon."""
    if (problem := packages_lacking(EMBEDDED_PACKAGES)) is not None:
        pytest.skip(problem)
    from hibari.g2p import G2P

    return EnglishReader(G2P())


@pytest.fixture(scope="module")
def chinese(english: EnglishReader) -> ChineseReader:
    """The reader with its normalizer and word list."""
    return load_chinese_reader(english)


def read_chinese(reader: ChineseReader, text: str) -> Phonemes:
    return reader.read(text, list(enumerate(source_words(text))))


def read_english(reader: EnglishReader, text: str) -> Phonemes:
    return reader.read(text, [(i, word.text) for i, word in enumerate(source_words(text))])


@pytest.mark.parametrize(
    ("text", "aloud"),
    [
        ("2026年11月30日", "二零二六年十一月三十日"),
        ("金额为2026元", "金额为两千零二十六元"),
        ("完成率12.5%", "完成率百分之十二点五"),
        ("气温-5℃", "气温负五摄氏度"),
        ("下午3:30开会", "下午三点三十分开会"),
        ("共1,234,567人", "共一百二十三万四千五百六十七人"),
        ("重25 kg", "重二十五千克"),
        ("时速80km/h", "时速每小时八十公里"),
        ("价格$5.50", "价格五点五零美元"),
        ("收入¥300万", "收入三百万元"),
        ("投资$2.5亿", "投资二点五亿美元"),
        ("1/3的人", "三分之一的人"),
        ("3-5天", "三到五天"),
    ],
)
def test_chinese_numbers_are_read_as_chinese(chinese: ChineseReader, text: str, aloud: str) -> None:
    """WEIR-341: as the same sentence written out; tone marks and all."""
    got = read_chinese(chinese, text).symbols.replace(" ", "")
    assert got == read_chinese(chinese, aloud).symbols.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "aloud"),
    [
        ("Dr. Smith paid $9.99", "Doctor Smith paid nine dollars and ninety nine cents"),
        ("at 7:30 pm", "at seven thirty P.M."),
        ("25 kg", "twenty five kilograms"),
        ("12.5%", "twelve point five percent"),
        ("March 3rd", "March third"),
        ("Chapter IV", "Chapter four"),
        ("1234567890123456", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6"),
        ("Pick 1,2,3,4,5 or 6", "Pick one, two, three, four, five or six"),
        ("1,2", "one, two"),
        ("0,5", "zero, five"),
        ("0,500", "zero, five hundred"),
        ("12,34", "twelve, thirty four"),
        ("3.5,250", "three point five, two hundred fifty"),
        ("1,234", "one thousand two hundred thirty four"),
        ("1,234,567.5", "1234567.5"),
        ("1,234.5,6", "1234.5, six"),
        ("March 5,2024", "March fifth, 2024"),
        ("1," * 60 + "1", "one, " * 60 + "one"),
        ("1,000,000,000,000,000", "1" + " 0" * 15),
    ],
)
def test_english_numbers_are_read_as_english(english: EnglishReader, text: str, aloud: str) -> None:
    """WEIR-341: as the same sentence written out."""
    plain = str.maketrans("", "", " ˈˌ.")
    got = read_english(english, text).symbols.translate(plain)
    assert got == read_english(english, aloud).symbols.translate(plain)


def test_english_inside_chinese_is_read_as_english(
    chinese: ChineseReader, english: EnglishReader
) -> None:
    """WEIR-325: each script through its own reader, joined."""
    assert read_english(english, "GPT-4").symbols in read_chinese(chinese, "我用GPT-4写。").symbols


def test_a_list_of_numbers_inside_an_english_run_is_read_as_a_list(
    chinese: ChineseReader, english: EnglishReader
) -> None:
    """WEIR-341: a Chinese sentence reads it as an English one does."""
    read = read_chinese(chinese, "他说Pick 1,2 or six。")
    assert "wˈʌn, tˈu ɔɹ sˈɪks" in read.symbols
    owners = dict(zip(read.symbols, read.words, strict=True))
    words = [word.text for word in source_words("他说Pick 1,2 or six。")]
    assert words[owners["w"]] == "1,2"


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith paid $9.99 for 25 kg at 7:30 pm on March 3rd, 2024.",
        "On 5 March it rose 3 % to £3.5 million, i.e. a lot.",
        "Pick 1,2,3,4,5 or 6 of 12,34 and 1,234,567.",
        "No. 5 St. Louis, 221 Baker St., well-known/and so on (maybe).",
        "你好，今天是2026年11月30日，金额为1,234.5元，温度25℃，重25 kg，速度80km/h。",
        "iPhone 15 Pro 发布了，版本v2.1，GPT-4很强，¥300万。",
    ],
)
def test_every_word_of_the_source_has_a_reading(
    chinese: ChineseReader, english: EnglishReader, text: str
) -> None:
    """IO-INV-102: no word is lost by being rewritten, and none is read before the one before it."""
    read = read_english(english, text) if text.isascii() else read_chinese(chinese, text)
    owners = [word for word in read.words if word >= 0]
    assert owners == sorted(owners)
    assert set(owners) == set(range(len(source_words(text))))


PIECES: Sequence[str] = (
    *(
        "1",
        "23",
        "1,234",
        "12.5",
        "%",
        "$",
        "¥",
        "km",
        "kg",
        "/",
        "-",
        ":",
        ".",
        ",",
        "!",
        " ",
        "'",
    ),
    *(
        '"',
        "(",
        ")",
        "](/",
        "a",
        "B",
        "Dr.",
        "U.S.",
        "pm",
        "March",
        "3rd",
        "é",
        "ß",
        "ℍ",
        "😀",
        "你",
    ),
    *(
        "好",
        "年",
        "万",
        "𠮷",
        "\x00",
        "\u0301",
        "ا",
        "~",
        "#1",
        "@",
        "&",
        "*",
        "=",
        "<",
        "|",
        "−",
        "—",
    ),
    *("…", "12:30", "2024-13-45", "99/99/9999", "XIV", "1e5", "½", "²", "٣", "１２", "Ａ", "No. 5"),
)


def test_any_mixture_is_read_in_order(chinese: ChineseReader, english: EnglishReader) -> None:
    """WEIR-332: two hundred random mixtures, each through both readers."""
    choose = random.Random(7)
    for _ in range(200):
        text = "".join(choose.choices(PIECES, k=choose.randint(1, 12)))
        for read in (read_chinese(chinese, text), read_english(english, text)):
            owners = [word for word in read.words if word >= 0]
            assert owners == sorted(owners), text
            assert all(owner < len(source_words(text)) for owner in owners), text
