"""The initialization segment: `ftyp` and `moov` of a movie whose pictures all come in fragments.

Owns: these two boxes, the sample entry's fixed part and its colour. Does not own: what a codec puts
into its sample entry (`avc`, `vp9`, `av1`), fragments. Enforces: WEIR-197 (a late viewer needs this
segment and nothing else that came before its first chunk).
"""

from __future__ import annotations

from dataclasses import dataclass

from services.video.media.boxes import UNITY_MATRIX, box, full_box, uint16, uint32

TRACK_ID = 1
"""The one track of a stream."""

_SELF_CONTAINED = 1  # data reference: the samples lie in this very file
_TRACK_ENABLED_AND_IN_MOVIE = 3
_UNDETERMINED_LANGUAGE = 0x55C4  # "und", five bits a letter
_SEVENTY_TWO_DPI = 0x00480000
_NO_COLOUR_TABLE = 0xFFFF
_BT709 = 1  # number of BT.709 among colour primaries, transfer functions and matrices alike


@dataclass(frozen=True, slots=True)
class SampleDescription:
    """What a decoder must know before the first picture.

    `kind` is the type of the sample entry, `configuration` the whole box with the codec's
    parameters, `codec_string` their name for Media Source Extensions (RFC 6381).
    """

    kind: bytes
    configuration: bytes
    codec_string: str


@dataclass(frozen=True, slots=True)
class Track:
    """The video track: size in pixels, `timescale` in ticks per second."""

    width: int
    height: int
    timescale: int
    description: SampleDescription


def initialization_segment(track: Track) -> bytes:
    """Return `ftyp` and `moov`."""
    return _file_type(track.description.kind) + box(
        b"moov", _movie_header(track.timescale), _track(track), box(b"mvex", _track_extends())
    )


def _file_type(codec: bytes) -> bytes:
    # iso6 knows version 1 of `tfdt`, and offsets that count from the fragment (iso5).
    return box(b"ftyp", b"iso6", uint32(0), b"iso6", b"iso5", b"mp41", codec)


def _movie_header(timescale: int) -> bytes:
    return full_box(
        b"mvhd",
        0,
        0,
        uint32(0, 0, timescale, 0),  # created, modified, timescale, duration: in the fragments
        uint32(0x00010000),  # rate
        uint16(0x0100, 0),  # volume
        bytes(8),
        UNITY_MATRIX,
        bytes(24),
        uint32(TRACK_ID + 1),  # next track
    )


def _track(track: Track) -> bytes:
    return box(b"trak", _track_header(track), _media(track))


def _track_header(track: Track) -> bytes:
    return full_box(
        b"tkhd",
        0,
        _TRACK_ENABLED_AND_IN_MOVIE,
        uint32(0, 0, TRACK_ID, 0, 0),  # created, modified, id, reserved, duration
        bytes(8),
        uint16(0, 0, 0, 0),  # layer, alternate group, volume
        UNITY_MATRIX,
        uint32(track.width << 16, track.height << 16),
    )


def _media(track: Track) -> bytes:
    header = full_box(
        b"mdhd", 0, 0, uint32(0, 0, track.timescale, 0), uint16(_UNDETERMINED_LANGUAGE, 0)
    )
    handler = full_box(b"hdlr", 0, 0, uint32(0), b"vide", bytes(12), b"video\0")
    location = full_box(b"dref", 0, 0, uint32(1), full_box(b"url ", 0, _SELF_CONTAINED))
    information = box(
        b"minf",
        full_box(b"vmhd", 0, 1, uint16(0, 0, 0, 0)),
        box(b"dinf", location),
        _sample_table(track),
    )
    return box(b"mdia", header, handler, information)


def _sample_table(track: Track) -> bytes:
    # Every table is empty: samples stand in the fragments only.
    return box(
        b"stbl",
        full_box(b"stsd", 0, 0, uint32(1), _sample_entry(track)),
        full_box(b"stts", 0, 0, uint32(0)),
        full_box(b"stsc", 0, 0, uint32(0)),
        full_box(b"stsz", 0, 0, uint32(0, 0)),
        full_box(b"stco", 0, 0, uint32(0)),
    )


def _sample_entry(track: Track) -> bytes:
    return box(
        track.description.kind,
        bytes(6),
        uint16(1),  # data reference
        bytes(16),
        uint16(track.width, track.height),
        uint32(_SEVENTY_TWO_DPI, _SEVENTY_TWO_DPI, 0),
        uint16(1),  # one picture a sample
        bytes(32),  # no name of a compressor
        uint16(0x0018, _NO_COLOUR_TABLE),  # depth
        track.description.configuration,
        # Limited range: the bit for full range stays clear.
        box(b"colr", b"nclx", uint16(_BT709, _BT709, _BT709), b"\0"),
    )


def _track_extends() -> bytes:
    # Duration, size and flags stand with every sample, so there is nothing to fall back on.
    return full_box(b"trex", 0, 0, uint32(TRACK_ID, 1, 0, 0, 0))
