"""Fragments: one `moof` and one `mdat` for the pictures of a chunk.

Owns: these boxes. Does not own: the bytes of a picture (the codecs), where a fragment lies in the
stream (`random_access`). Enforces: WEIR-197 (a fragment is read without any other: it says when it
starts, and its offsets count from its own first byte), WEIR-198 (every picture has its duration).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.video.media.boxes import box, box_header, full_box, uint32, uint64
from services.video.media.initialization import TRACK_ID

_OFFSETS_COUNT_FROM_MOOF = 0x020000
_HAS_DATA_OFFSET = 0x000001
_HAS_DURATION = 0x000100
_HAS_SIZE = 0x000200
_HAS_FLAGS = 0x000400

_KEY_PICTURE = 0x02000000  # depends on no other
_OTHER_PICTURE = 0x01010000  # depends on others, is no place to start


@dataclass(frozen=True, slots=True)
class Sample:
    """One coded picture; `is_key` where a decoder can start with it."""

    data: bytes
    is_key: bool


@dataclass(frozen=True, slots=True)
class FragmentTiming:
    """The place of a fragment: `sequence` from 1; `start` of its first picture and `duration` of
    every picture in ticks of the track's timescale."""

    sequence: int
    start: int
    duration: int


def media_fragment(timing: FragmentTiming, samples: Sequence[Sample]) -> bytes:
    """Return `moof` and `mdat` with the samples in order. Raises ValueError when there are none."""
    if not samples:
        raise ValueError("a fragment needs a sample")
    data_header = box_header(b"mdat", sum(len(sample.data) for sample in samples))
    # The offset is a word of fixed width, so a first pass tells how long `moof` is.
    data_offset = len(_movie_fragment(timing, samples, 0)) + len(data_header)
    movie_fragment = _movie_fragment(timing, samples, data_offset)
    return b"".join((movie_fragment, data_header, *(sample.data for sample in samples)))


def _movie_fragment(timing: FragmentTiming, samples: Sequence[Sample], data_offset: int) -> bytes:
    return box(
        b"moof",
        full_box(b"mfhd", 0, 0, uint32(timing.sequence)),
        box(
            b"traf",
            full_box(b"tfhd", 0, _OFFSETS_COUNT_FROM_MOOF, uint32(TRACK_ID)),
            full_box(b"tfdt", 1, 0, uint64(timing.start)),
            _run(timing.duration, samples, data_offset),
        ),
    )


def _run(duration: int, samples: Sequence[Sample], data_offset: int) -> bytes:
    words = [len(samples), data_offset]
    for sample in samples:
        words += duration, len(sample.data), _KEY_PICTURE if sample.is_key else _OTHER_PICTURE
    flags = _HAS_DATA_OFFSET | _HAS_DURATION | _HAS_SIZE | _HAS_FLAGS
    return full_box(b"trun", 0, flags, uint32(*words))
