"""AV1 in the container: open bitstream units, `av1C`, the codec string."""

from __future__ import annotations

import pytest

from services.video.media import av1
from services.video.media.formats import EncoderSettings, VideoFormat

VIDEO, SETTINGS = VideoFormat(640, 384, 24), EncoderSettings()
DELIMITER = bytes.fromhex("1200")
# Main profile, one operating point, level index 1, then the size and the rest.
HEADER = bytes.fromhex("0a06 0000000cc4ff")
FRAME = bytes.fromhex("3203 100085")


def header(bits: str) -> bytes:
    """A sequence header unit that starts with these bits."""
    padded = bits.replace(" ", "").ljust(48, "0")
    return b"\x0a\x06" + int(padded, 2).to_bytes(6, "big")


def test_a_temporal_unit_is_cut_into_its_units() -> None:
    """WEIR-197: types, whole units and payloads, sizes of more than one byte included."""
    long = bytes.fromhex("32 8101") + bytes(129)
    extended = bytes.fromhex("36 00 02 1000")
    found = list(av1.open_units(DELIMITER + HEADER + long + extended))
    assert [unit.kind for unit in found] == [2, 1, 6, 6]
    assert b"".join(unit.data for unit in found) == DELIMITER + HEADER + long + extended
    assert [len(unit.payload) for unit in found] == [0, 6, 129, 2]


def test_a_sample_is_the_temporal_unit_without_its_delimiter() -> None:
    """WEIR-197: the sample itself delimits."""
    assert av1.sample(DELIMITER + HEADER + FRAME) == HEADER + FRAME
    assert av1.sample(DELIMITER) == b""


@pytest.mark.parametrize(
    ("unit", "string"),
    [
        (HEADER, "av01.0.01M.08.0.110.01.01.01.0"),
        (header("000 0000 00000" + "0" * 12 + "00101"), "av01.0.05M.08.0.110.01.01.01.0"),
        (header("000 0000 00000" + "0" * 12 + "01000 0"), "av01.0.08M.08.0.110.01.01.01.0"),
        (header("000 0000 00000" + "0" * 12 + "01101 1"), "av01.0.13H.08.0.110.01.01.01.0"),
    ],
)
def test_the_sequence_header_becomes_av1c_and_codec_string(unit: bytes, string: str) -> None:
    """WEIR-197: profile, level and tier are read out of the stream."""
    found = av1.describe(DELIMITER + unit + FRAME, VIDEO, SETTINGS)
    assert (found.kind, found.codec_string) == (b"av01", string)
    level, tier = int(string.split(".")[2][:2]), 0x80 if "H" in string else 0
    # av1C, 20 bytes: marker and version, profile and level, tier and eight bits 4:2:0, the unit.
    assert found.configuration[:8] == bytes.fromhex("00000014 61763143")
    assert found.configuration[8:] == bytes([0x81, level, tier | 0x0C, 0]) + unit


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (DELIMITER + FRAME, "without its sequence header"),
        (HEADER + HEADER + FRAME, "without its sequence header"),
        (HEADER, "not exactly one picture"),
        (HEADER + FRAME + FRAME, "not exactly one picture"),
        (HEADER + b"\x32\x00", "not exactly one picture"),
        (HEADER + b"\x32\x01\x30", "not exactly one picture"),
        (HEADER + b"\x32\x01\x00", "not exactly one picture"),
        (HEADER + b"\x1a\x01\x90", "not exactly one picture"),
        (header("001") + FRAME, "another kind"),
        (header("000 1") + FRAME, "another kind"),
        (header("000 01") + FRAME, "another kind"),
        (header("000 001") + FRAME, "another kind"),
        (header("000 0001") + FRAME, "another kind"),
        (header("000 0000 00001") + FRAME, "another kind"),
        (b"\x08\x01", "without its size"),
        (b"\x32\x05\x01", "ends too late"),
        (b"\x32\x81", "without an end"),
        (b"\x32" + b"\x81" * 9, "without an end"),
    ],
)
def test_what_is_not_as_announced_is_refused(packet: bytes, message: str) -> None:
    """WEIR-197: nothing is guessed from a stream of another kind."""
    with pytest.raises(ValueError, match=message):
        av1.describe(packet, VIDEO, SETTINGS)
