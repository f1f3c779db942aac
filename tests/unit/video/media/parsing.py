"""A reader of ISO base media files that shares nothing with the writer.

Owns: boxes and fragments as a player sees them. It reads a whole file from its first byte on and
fails where sizes do not add up.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"dinf", b"stbl", b"mvex", b"moof"})
CONTAINERS |= {b"traf", b"mfra"}


@dataclass(frozen=True)
class Box:
    """A box at its offset in the file: the whole of it, and what is behind its header."""

    kind: bytes
    offset: int
    whole: bytes
    payload: bytes

    @property
    def children(self) -> list[Box]:
        """The boxes inside, for those that hold nothing else."""
        header = len(self.whole) - len(self.payload)
        return list(boxes(self.payload, self.offset + header))

    def one(self, *path: bytes) -> Box:
        """The only box at the end of a path below this one."""
        found = self
        for kind in path:
            (found,) = (child for child in found.children if child.kind == kind)
        return found


def boxes(data: bytes, base: int = 0) -> Iterator[Box]:
    """Every box of `data`, which lies at `base` in its file; they fill it to the last byte."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        kind, header = data[at + 4 : at + 8], 8
        if size == 1:
            size, header = int.from_bytes(data[at + 8 : at + 16], "big"), 16
        assert header <= size <= len(data) - at, f"{kind!r} at {base + at} says {size} bytes"
        yield Box(kind, base + at, data[at : at + size], data[at + header : at + size])
        at += size


def tree(data: bytes) -> list[str]:
    """The types of all boxes, each with the path that leads to it."""

    def below(box: Box, path: str) -> Iterator[str]:
        here = f"{path}/{box.kind.decode()}"
        yield here
        if box.kind in CONTAINERS:
            for child in box.children:
                yield from below(child, here)

    return [name for box in boxes(data) for name in below(box, "")]


class ReadSample(NamedTuple):
    """A sample of a fragment: ticks, bytes, and whether it is a sync sample."""

    start: int
    duration: int
    data: bytes
    is_key: bool


@dataclass(frozen=True)
class ReadFragment:
    """A `moof`, at its offset in the file, with the samples it finds in the file."""

    offset: int
    sequence: int
    start: int
    samples: list[ReadSample]


def fragments(data: bytes) -> list[ReadFragment]:
    """Every fragment of a file; the samples fill each `mdat` exactly."""
    found, top = [], list(boxes(data))
    for index, box in enumerate(top):
        if box.kind == b"moof":
            fragment = _fragment(data, box)
            assert top[index + 1].kind == b"mdat"
            held = b"".join(sample.data for sample in fragment.samples)
            assert top[index + 1].payload == held
            found.append(fragment)
    return found


def _fragment(data: bytes, moof: Box) -> ReadFragment:
    (sequence,) = struct.unpack(">4xI", moof.one(b"mfhd").payload)
    flags, track = struct.unpack(">II", moof.one(b"traf", b"tfhd").payload)
    assert (flags, track) == (0x020000, 1), "offsets count from the moof, track 1"
    version, start = struct.unpack(">IQ", moof.one(b"traf", b"tfdt").payload)
    assert version == 0x01000000
    run = moof.one(b"traf", b"trun").payload
    flags, count, offset = struct.unpack(">IIi", run[:12])
    assert flags == 0x000701, "a data offset; duration, size and flags of every sample"
    samples, at, time = [], moof.offset + offset, start
    for duration, size, sample_flags in struct.iter_unpack(">III", run[12:]):
        is_key = not sample_flags >> 16 & 1
        samples.append(ReadSample(time, duration, data[at : at + size], is_key))
        at, time = at + size, time + duration
    assert len(samples) == count
    return ReadFragment(moof.offset, sequence, start, samples)


class Place(NamedTuple):
    """An entry of `tfra`."""

    time: int
    offset: int
    numbers: tuple[int, int, int]


def random_access(data: bytes) -> list[Place]:
    """The places that a file's trailer names, found from the file's last four bytes."""
    size = int.from_bytes(data[-4:], "big")
    (trailer,) = boxes(data[-size:], len(data) - size)
    assert trailer.kind == b"mfra"
    table = trailer.one(b"tfra").payload
    version, track, widths, count = struct.unpack(">IIII", table[:16])
    assert (version, track, widths) == (0x01000000, 1, 0)
    places = [
        Place(time, offset, (traf, trun, sample))
        for time, offset, traf, trun, sample in struct.iter_unpack(">QQBBB", table[16:])
    ]
    assert len(places) == count
    return places
