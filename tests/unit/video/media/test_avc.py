"""H.264 in the container: NAL units, `avcC`, the codec string."""

from __future__ import annotations

import pytest

from services.video.media import avc
from services.video.media.formats import EncoderSettings, VideoFormat

VIDEO, SETTINGS = VideoFormat(640, 384, 24), EncoderSettings()
SPS = bytes.fromhex("6742c01eda0280")
PPS = bytes.fromhex("68ce0fc8")
SEI = bytes.fromhex("0605ff80")
IDR = bytes.fromhex("6588840002fc")
DELIMITER = bytes.fromhex("0910")
LONG, SHORT = b"\0\0\0\1", b"\0\0\1"


@pytest.mark.parametrize(
    ("stream", "units"),
    [
        (b"", []),
        (LONG + SPS, [SPS]),
        (LONG + SPS + LONG + PPS + SHORT + IDR, [SPS, PPS, IDR]),
        (SHORT + SPS + b"\0\0" + LONG + IDR + b"\0\0\0", [SPS, IDR]),
        (LONG + SPS + LONG + SHORT + IDR, [SPS, IDR]),
    ],
)
def test_a_byte_stream_is_cut_at_its_start_codes(stream: bytes, units: list[bytes]) -> None:
    """WEIR-197: of three or four bytes; zeros around a unit are not part of it."""
    assert list(avc.nal_units(stream)) == units


def test_a_sample_has_lengths_and_leaves_out_what_the_sample_entry_says() -> None:
    """WEIR-197: `avc1` keeps parameter sets out of the samples."""
    packet = b"".join(LONG + unit for unit in (DELIMITER, SPS, PPS, SEI, IDR))
    assert avc.sample(packet) == b"\0\0\0\4" + SEI + b"\0\0\0\6" + IDR
    assert avc.sample(LONG + SPS) == b""


def test_the_parameters_of_the_first_packet_become_avcc_and_codec_string() -> None:
    """WEIR-197: what is announced is what the encoder wrote, not what it was asked for."""
    packet = LONG + SPS + LONG + PPS + SHORT + IDR
    found = avc.describe(packet, VIDEO, SETTINGS)
    assert found.kind == b"avc1"
    assert found.codec_string == "avc1.42c01e"
    assert found.configuration == bytes.fromhex(
        "0000001e 61766343"  # avcC, 30 bytes
        "01 42c01e ff"  # version, profile and level, four bytes of length
        "e1 0007 6742c01eda0280"  # one SPS
        "01 0004 68ce0fc8"  # one PPS
    )


@pytest.mark.parametrize(
    "units",
    [(IDR,), (SPS, IDR), (PPS, IDR), (SPS, SPS, PPS, IDR), (SPS, PPS, PPS, IDR), (SPS[:3], PPS)],
)
def test_a_first_packet_without_its_parameters_is_refused(units: tuple[bytes, ...]) -> None:
    """WEIR-197: nothing is guessed."""
    with pytest.raises(ValueError, match="parameter sets"):
        avc.describe(b"".join(LONG + unit for unit in units), VIDEO, SETTINGS)


def test_an_i_picture_is_not_enough() -> None:
    """WEIR-196: only an IDR picture lets nothing after it reach back."""
    packet = b"".join(LONG + unit for unit in (SPS, PPS, bytes.fromhex("418884000f")))
    with pytest.raises(ValueError, match="no IDR picture"):
        avc.describe(packet, VIDEO, SETTINGS)
