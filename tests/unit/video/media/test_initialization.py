"""The initialization segment, against bytes worked out by hand."""

from __future__ import annotations

import pytest

from services.video.media.initialization import SampleDescription, Track, initialization_segment
from tests.unit.video.media.parsing import Box, boxes, tree

CONFIGURATION = bytes.fromhex("0000000a 61766343 beef")
SEGMENT = initialization_segment(
    Track(640, 384, 24_000, SampleDescription(b"avc1", CONFIGURATION, "avc1.42c01e"))
)
FILE_TYPE, MOVIE = boxes(SEGMENT)
MATRIX = "00010000 00000000 00000000 00000000 00010000 00000000 00000000 00000000 40000000"


def test_it_holds_exactly_the_boxes_of_a_fragmented_movie() -> None:
    """WEIR-197: one track, its tables, and the note that samples come in fragments."""
    assert tree(SEGMENT) == [
        "/ftyp",
        "/moov",
        "/moov/mvhd",
        "/moov/trak",
        "/moov/trak/tkhd",
        "/moov/trak/mdia",
        "/moov/trak/mdia/mdhd",
        "/moov/trak/mdia/hdlr",
        "/moov/trak/mdia/minf",
        "/moov/trak/mdia/minf/vmhd",
        "/moov/trak/mdia/minf/dinf",
        "/moov/trak/mdia/minf/dinf/dref",
        "/moov/trak/mdia/minf/stbl",
        "/moov/trak/mdia/minf/stbl/stsd",
        "/moov/trak/mdia/minf/stbl/stts",
        "/moov/trak/mdia/minf/stbl/stsc",
        "/moov/trak/mdia/minf/stbl/stsz",
        "/moov/trak/mdia/minf/stbl/stco",
        "/moov/mvex",
        "/moov/mvex/trex",
    ]


MEDIA = MOVIE.one(b"trak", b"mdia")
TABLE = MEDIA.one(b"minf", b"stbl")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (FILE_TYPE, "69736f36 00000000 69736f36 69736f35 6d703431 61766331"),
        (
            MOVIE.one(b"mvhd"),
            f"00000000 00000000 00000000 00005dc0 00000000 00010000 0100 0000"
            f"0000000000000000 {MATRIX} {'00' * 24} 00000002",
        ),
        (
            MOVIE.one(b"trak", b"tkhd"),
            f"00000003 00000000 00000000 00000001 00000000 00000000 0000000000000000"
            f"0000 0000 0000 0000 {MATRIX} 02800000 01800000",
        ),
        (MEDIA.one(b"mdhd"), "00000000 00000000 00000000 00005dc0 00000000 55c4 0000"),
        (MEDIA.one(b"hdlr"), f"00000000 00000000 76696465 {'00' * 12} 766964656f00"),
        (MEDIA.one(b"minf", b"vmhd"), "00000001 0000 0000 0000 0000"),
        (MEDIA.one(b"minf", b"dinf", b"dref"), "00000000 00000001 0000000c 75726c20 00000001"),
        (
            TABLE.one(b"stsd"),
            f"00000000 00000001 00000073 61766331 {'00' * 6} 0001 {'00' * 16} 0280 0180"
            f"00480000 00480000 00000000 0001 {'00' * 32} 0018 ffff"
            f"0000000a 61766343 beef 00000013 636f6c72 6e636c78 0001 0001 0001 00",
        ),
        (TABLE.one(b"stts"), "00000000 00000000"),
        (TABLE.one(b"stsc"), "00000000 00000000"),
        (TABLE.one(b"stsz"), "00000000 00000000 00000000"),
        (TABLE.one(b"stco"), "00000000 00000000"),
        (MOVIE.one(b"mvex", b"trex"), "00000000 00000001 00000001 00000000 00000000 00000000"),
    ],
    ids=lambda value: value.kind.decode() if isinstance(value, Box) else "",
)
def test_a_box_has_the_bytes_that_the_standard_asks_for(found: Box, expected: str) -> None:
    """WEIR-197: every field, at its place, in its width."""
    assert found.payload == bytes.fromhex(expected)
