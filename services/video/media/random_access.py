"""The trailer: `mfra`, which tells a player of the saved stream where it can start.

Owns: the places where chunks start, and the box. Does not own: what else a saved stream holds.
Enforces: WEIR-197 (an offset counts from the first byte of the first payload; the trailer is never
empty), WEIR-199 (what is kept does not grow without end).
"""

from __future__ import annotations

import struct
from array import array

from services.video.media.boxes import box, full_box, uint32
from services.video.media.initialization import TRACK_ID

MAX_POINTS = 131_072
"""Most places kept, 2 MiB: a chunk for every picture of half an hour at 60 a second fits."""

_ONE_BYTE_NUMBERS = 0  # of the fragment, the run and the sample inside a place
_MFRO_BYTES = 16
_MFRA_HEADER_BYTES = 8


class RandomAccessPoints:
    """Start times in ticks and byte offsets of the `moof` boxes, in order."""

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        if max_points < 2:
            raise ValueError("at least two places must fit")
        self._max_points = max_points
        self._times = array("Q")
        self._offsets = array("Q")
        self._stride = 1
        self._seen = 0

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time: int, offset: int) -> None:
        """Keep a place; when no more fit, every second one is given up, then and from there on."""
        if self._seen % self._stride == 0:
            if len(self._times) >= self._max_points:
                self._thin()
            # The place is on the coarser grid too, or else it is the first that is left out.
            if self._seen % self._stride == 0:
                self._times.append(time)
                self._offsets.append(offset)
        self._seen += 1

    def trailer(self) -> bytes:
        """Return `mfra` with every place kept; without any it is well formed too, not empty."""
        entry = struct.Struct(">QQBBB")
        entries = b"".join(
            entry.pack(time, offset, 1, 1, 1)
            for time, offset in zip(self._times, self._offsets, strict=True)
        )
        table = full_box(
            b"tfra", 1, 0, uint32(TRACK_ID, _ONE_BYTE_NUMBERS, len(self._times)), entries
        )
        size = _MFRA_HEADER_BYTES + len(table) + _MFRO_BYTES
        return box(b"mfra", table, full_box(b"mfro", 0, 0, uint32(size)))

    def _thin(self) -> None:
        # WEIR-199: half the places, twice as far apart; seeking stays possible all over the stream.
        self._times = self._times[::2]
        self._offsets = self._offsets[::2]
        self._stride *= 2
