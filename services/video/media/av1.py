"""AV1 in an ISO base media file (AV1 Codec ISO Media File Format Binding).

Owns: the options of SVT-AV1, open bitstream units, `av1C` and the `av01.` string. Does not own:
driving the encoder. Enforces: WEIR-196 (no picture waits for a later one), WEIR-197 (the sequence
header announced is the one that the encoder really wrote).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from services.video.media.boxes import box
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.initialization import SampleDescription

_SEQUENCE_HEADER = 1
_TEMPORAL_DELIMITER = 2
_FRAME_HEADER = 3
_FRAME = 6
_SHOWN_KEY_FRAME = 0b0_00_1  # shows no existing frame, is a key frame, is shown

_MOST_PARALLEL = 6  # a level of SVT-AV1, which starts some threads for each

_MARKER_AND_VERSION = 0x81
_EIGHT_BIT_420 = 0b0_0_0_1_1_00  # depth, twelve bits, monochrome, subsampling x, y, siting unknown
_TIERS = "MH"
_FIRST_LEVEL_WITH_TIERS = 8


def options(_video: VideoFormat, settings: EncoderSettings) -> dict[str, str]:
    """Return the options of SVT-AV1."""
    parameters = {
        # Low delay; no look ahead; a key picture only where it is asked for.
        "pred-struct": 1,
        "lookahead": 0,
        "scd": 0,
        "force-key-frames": 1,
        # Constant rate with a bound on quality: its constant quality knows no limit of the rate.
        "rc": 2,
        "tbr": settings.max_kbit_per_s,
        "min-qp": settings.av1_min_quantizer,
        "lp": min(settings.threads, _MOST_PARALLEL),
    }
    return {
        # Faster ones, and the real-time tuning, were seen to leave out whole changes of colour.
        "preset": "9",
        "svtav1-params": ":".join(f"{name}={value}" for name, value in parameters.items()),
    }


def describe(packet: bytes, _video: VideoFormat, _settings: EncoderSettings) -> SampleDescription:
    """Return the sample entry of a stream that starts with `packet`, a key picture.

    Raises ValueError when it is none, or does not carry one sequence header of the kind that is
    announced.
    """
    units = list(open_units(packet))
    headers = [unit for unit in units if unit.kind == _SEQUENCE_HEADER]
    if len(headers) != 1:
        raise ValueError("a key picture without its sequence header")
    frames = [unit.payload[:1] for unit in units if unit.kind in (_FRAME_HEADER, _FRAME)]
    # WEIR-196: no other picture may be the first of a chunk, and none may be hidden in it.
    if len(frames) != 1 or not frames[0] or frames[0][0] >> 4 != _SHOWN_KEY_FRAME:
        raise ValueError("not exactly one picture, a key picture")
    profile, level, tier = _profile_level_tier(headers[0].payload)
    configuration = box(
        b"av1C",
        bytes([_MARKER_AND_VERSION, profile << 5 | level, tier << 7 | _EIGHT_BIT_420, 0]),
        headers[0].data,
    )
    codec_string = f"av01.{profile}.{level:02}{_TIERS[tier]}.08.0.110.01.01.01.0"
    return SampleDescription(b"av01", configuration, codec_string)


def sample(packet: bytes) -> bytes:
    """Return the picture less its temporal delimiter: in a file the sample is the delimiter."""
    return b"".join(unit.data for unit in open_units(packet) if unit.kind != _TEMPORAL_DELIMITER)


@dataclass(frozen=True, slots=True)
class OpenUnit:
    """One open bitstream unit: the whole `data`, and the `payload` behind its header."""

    kind: int
    data: bytes
    payload: bytes


def open_units(packet: bytes) -> Iterator[OpenUnit]:
    """Cut a temporal unit into its parts. Raises ValueError where they do not add up."""
    start = 0
    while start < len(packet):
        header = packet[start]
        has_extension, has_size = header >> 2 & 1, header >> 1 & 1
        if not has_size:
            raise ValueError("an open bitstream unit without its size")
        size, size_bytes = _leb128(packet, start + 1 + has_extension)
        payload = start + 1 + has_extension + size_bytes
        end = payload + size
        if end > len(packet):
            raise ValueError("an open bitstream unit that ends too late")
        yield OpenUnit(header >> 3 & 0xF, packet[start:end], packet[payload:end])
        start = end


def _leb128(data: bytes, start: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, lowest first, and how many bytes it takes."""
    value = 0
    for index, byte in enumerate(data[start : start + 8]):
        value |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return value, index + 1
    raise ValueError("a size without an end")


def _profile_level_tier(sequence_header: bytes) -> tuple[int, int, int]:
    bits = int.from_bytes(sequence_header[:4].ljust(4, b"\0"), "big")
    profile = bits >> 29
    # Still picture, reduced header, timing and delay information: never asked for. They, more than
    # one operating point, or another profile would move or change what follows.
    if profile or bits >> 25 & 0xF or bits >> 20 & 0x1F:
        raise ValueError("a sequence header of another kind than asked for")
    level = bits >> 3 & 0x1F
    tier = bits >> 2 & 1 if level >= _FIRST_LEVEL_WITH_TIERS else 0
    return profile, level, tier
