"""H.264 in an ISO base media file (ISO/IEC 14496-15).

Owns: the options of libx264, NAL units, `avcC` and the `avc1.` string. Does not own: driving the
encoder. Enforces: WEIR-196 (no picture waits for a later one), WEIR-197 (the parameters announced
are those that the encoder really wrote).
"""

from __future__ import annotations

from collections.abc import Iterator

from services.video.media.boxes import box, uint16, uint32
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.initialization import SampleDescription

_TYPE_BITS = 0x1F
_IDR_PICTURE = 5
_SEQUENCE_PARAMETERS = 7
_PICTURE_PARAMETERS = 8
_DELIMITER = 9
_IN_SAMPLE_ENTRY = frozenset({_SEQUENCE_PARAMETERS, _PICTURE_PARAMETERS, _DELIMITER})

_START_CODE = b"\0\0\1"
_RESERVED_AND_LENGTH_SIZE = 0xFF  # six set bits, then: lengths of four bytes
_RESERVED_AND_ONE_SPS = 0xE1  # three set bits, then: one set of sequence parameters


def options(_video: VideoFormat, settings: EncoderSettings) -> dict[str, str]:
    """Return the options of libx264."""
    return {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "profile": "baseline",
        "forced-idr": "1",
        "crf": str(settings.h264_crf),
        "maxrate": f"{settings.max_kbit_per_s}k",
        "bufsize": f"{settings.max_kbit_per_s}k",
        # A key picture only where a chunk starts; chroma sited where the conversion averages it.
        "x264-params": "scenecut=0:bframes=0:keyint=infinite:chromaloc=1",
    }


def describe(packet: bytes, _video: VideoFormat, _settings: EncoderSettings) -> SampleDescription:
    """Return the sample entry of a stream that starts with `packet`, a key picture.

    Raises ValueError when it is none, or does not carry one set of parameters of each kind.
    """
    units = [(unit[0] & _TYPE_BITS, unit) for unit in nal_units(packet)]
    sequence = [unit for kind, unit in units if kind == _SEQUENCE_PARAMETERS]
    picture = [unit for kind, unit in units if kind == _PICTURE_PARAMETERS]
    if len(sequence) != 1 or len(picture) != 1 or len(sequence[0]) < 4:
        raise ValueError("a key picture without its parameter sets")
    # WEIR-196: any other I picture is followed by some that need what came before it.
    if all(kind != _IDR_PICTURE for kind, _ in units):
        raise ValueError("an I picture that is no IDR picture")
    profile = sequence[0][1:4]  # profile, constraints, level
    configuration = box(
        b"avcC",
        bytes([1, *profile, _RESERVED_AND_LENGTH_SIZE, _RESERVED_AND_ONE_SPS]),
        uint16(len(sequence[0])) + sequence[0],
        bytes([1]) + uint16(len(picture[0])) + picture[0],
    )
    return SampleDescription(b"avc1", configuration, f"avc1.{profile.hex()}")


def sample(packet: bytes) -> bytes:
    """Return the picture with lengths for start codes, less what the sample entry says already."""
    return b"".join(
        uint32(len(unit)) + unit
        for unit in nal_units(packet)
        if unit[0] & _TYPE_BITS not in _IN_SAMPLE_ENTRY
    )


def nal_units(stream: bytes) -> Iterator[bytes]:
    """Cut a byte stream (Annex B of H.264) into its NAL units."""
    start = stream.find(_START_CODE)
    while start >= 0:
        start += len(_START_CODE)
        end = stream.find(_START_CODE, start)
        # A unit never ends in a zero byte, so those belong to the next start code.
        unit = stream[start : end if end >= 0 else None].rstrip(b"\0")
        if unit:
            yield unit
        start = end
