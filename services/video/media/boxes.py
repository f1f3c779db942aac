"""Boxes of the ISO base media file format (ISO/IEC 14496-12), as bytes.

Owns: the size and type in front of a box, and the words inside one. Does not own: which boxes there
are (`initialization`, `fragments`, `random_access`, the codecs). Enforces: WEIR-197 (a box says its
own size exactly, in 64 bits where 32 do not hold it; every word is big-endian).
"""

from __future__ import annotations

import struct

_SHORT_HEADER_BYTES = 8
_LONG_HEADER_BYTES = 16
_MAX_SHORT_BYTES = 2**32 - 1

UNITY_MATRIX = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
"""The transformation that leaves a picture as it is; 16.16, the last column 2.30."""


def box_header(kind: bytes, payload_bytes: int) -> bytes:
    """Return what stands in front of `payload_bytes` bytes in a box of the four-character `kind`.

    Raises ValueError when `kind` is not four bytes.
    """
    if len(kind) != 4:
        raise ValueError(f"a box type is four bytes, not {kind!r}")
    size = payload_bytes + _SHORT_HEADER_BYTES
    if size <= _MAX_SHORT_BYTES:
        return struct.pack(">I4s", size, kind)
    # WEIR-197: a size of 1 says that the true one follows the type.
    return struct.pack(">I4sQ", 1, kind, payload_bytes + _LONG_HEADER_BYTES)


def box(kind: bytes, *parts: bytes) -> bytes:
    """Return a box that holds the parts one after the other."""
    return b"".join((box_header(kind, sum(map(len, parts))), *parts))


def full_box(kind: bytes, version: int, flags: int, *parts: bytes) -> bytes:
    """Return a box that starts with a version (8 bits) and flags (24 bits)."""
    return box(kind, uint32(version << 24 | flags), *parts)


def uint16(*values: int) -> bytes:
    """Return unsigned 16-bit words. Raises struct.error for one that does not fit, as all here."""
    return struct.pack(f">{len(values)}H", *values)


def uint32(*values: int) -> bytes:
    """Return unsigned 32-bit words."""
    return struct.pack(f">{len(values)}I", *values)


def uint64(*values: int) -> bytes:
    """Return unsigned 64-bit words."""
    return struct.pack(f">{len(values)}Q", *values)
