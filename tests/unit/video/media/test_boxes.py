"""The primitives of the container, against bytes worked out by hand."""

from __future__ import annotations

import struct

import pytest

from services.video.media.boxes import (
    UNITY_MATRIX,
    box,
    box_header,
    full_box,
    uint16,
    uint32,
    uint64,
)
from tests.unit.video.media.parsing import boxes


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (box(b"free"), "00000008 66726565"),
        (box(b"mdat", b"ab", b"", b"c"), "0000000b 6d646174 616263"),
        (full_box(b"mfhd", 0, 0, uint32(7)), "00000010 6d666864 00000000 00000007"),
        (full_box(b"trun", 1, 0x000701), "0000000c 7472756e 01000701"),
        (box(b"edts", box(b"elst")), "00000010 65647473 00000008 656c7374"),
        (uint16(1, 0xABCD), "0001 abcd"),
        (uint32(1, 0xABCDEF01), "00000001 abcdef01"),
        (uint64(2**32), "0000000100000000"),
        (
            UNITY_MATRIX,
            "00010000 00000000 00000000 00000000 00010000 00000000 00000000 00000000 40000000",
        ),
    ],
)
def test_a_box_is_its_size_its_type_and_its_parts(written: bytes, expected: str) -> None:
    """WEIR-197: big-endian, the size counts the header."""
    assert written == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("payload_bytes", "expected"),
    [
        (0, "00000008 6d646174"),
        (2**32 - 9, "ffffffff 6d646174"),
        (2**32 - 8, "00000001 6d646174 0000000100000008"),
        (2**40, "00000001 6d646174 0000010000000010"),
    ],
)
def test_a_size_is_64_bits_wide_where_32_do_not_hold_it(payload_bytes: int, expected: str) -> None:
    """WEIR-197: the last size of the short form, and the first of the long one."""
    assert box_header(b"mdat", payload_bytes) == bytes.fromhex(expected)


def test_boxes_are_read_back_as_they_were_written() -> None:
    """WEIR-197: another reader finds the same boxes, long sizes included."""
    long = struct.pack(">I4sQ", 1, b"wide", 19) + b"xyz"
    data = box(b"aaaa", b"1") + long + box(b"bbbb")
    assert [(found.kind, found.offset, found.payload) for found in boxes(data)] == [
        (b"aaaa", 0, b"1"),
        (b"wide", 9, b"xyz"),
        (b"bbbb", 28, b""),
    ]


@pytest.mark.parametrize("kind", [b"", b"abc", b"abcde"])
def test_a_type_is_four_bytes(kind: bytes) -> None:
    """WEIR-197: nothing is padded or cut."""
    with pytest.raises(ValueError, match="four bytes"):
        box(kind)


@pytest.mark.parametrize(("word", "value"), [(uint16, 2**16), (uint32, 2**32), (uint64, 2**64)])
def test_a_word_that_does_not_fit_is_refused(word: type, value: int) -> None:
    """WEIR-197: a number is never cut to fit; nor is a negative one turned."""
    for wrong in (value, -1):
        with pytest.raises(struct.error):
            word(wrong)
    assert int.from_bytes(word(value - 1), "big") == value - 1
