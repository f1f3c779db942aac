"""Fragments, against bytes worked out by hand and read back by another reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.video.media.fragments import FragmentTiming, Sample, media_fragment
from tests.unit.video.media.parsing import ReadSample, fragments


def test_a_fragment_has_the_bytes_that_the_standard_asks_for() -> None:
    """WEIR-197, WEIR-198: its offset counts from its own first byte, its start has 64 bits."""
    samples = [Sample(b"key", True), Sample(b"other", False)]
    assert media_fragment(FragmentTiming(5, 2**33, 1000), samples) == bytes.fromhex(
        "00000070 6d6f6f66"  # moof, 112 bytes
        "00000010 6d666864 00000000 00000005"  # mfhd: the fifth
        "00000058 74726166"  # traf, 88 bytes
        "00000010 74666864 00020000 00000001"  # tfhd: track 1, offsets from the moof
        "00000014 74666474 01000000 0000000200000000"  # tfdt, version 1
        "0000002c 7472756e 00000701 00000002 00000078"  # trun: two samples, 120 bytes from here
        "000003e8 00000003 02000000"  # depends on nothing
        "000003e8 00000005 01010000"  # depends on others, no sync sample
        "00000010 6d646174 6b6579 6f74686572"  # mdat
    )


@given(
    sequence=st.integers(1, 2**32 - 1),
    start=st.integers(0, 2**63),
    duration=st.integers(1, 2**31),
    samples=st.lists(st.builds(Sample, st.binary(min_size=1), st.booleans()), min_size=1),
    before=st.binary(min_size=9, max_size=50),
)
def test_another_reader_finds_the_same_samples(
    sequence: int, start: int, duration: int, samples: list[Sample], before: bytes
) -> None:
    """WEIR-197, WEIR-198: bytes, times and key pictures, wherever in the file the fragment lies."""
    head = len(before).to_bytes(4, "big") + b"free" + before[8:]
    data = head + media_fragment(FragmentTiming(sequence, start, duration), samples)
    (found,) = fragments(data)
    assert (found.offset, found.sequence, found.start) == (len(before), sequence, start)
    assert found.samples == [
        ReadSample(start + index * duration, duration, sample.data, sample.is_key)
        for index, sample in enumerate(samples)
    ]


def test_a_fragment_without_samples_is_refused() -> None:
    """WEIR-197: an empty run is no chunk."""
    with pytest.raises(ValueError, match="needs a sample"):
        media_fragment(FragmentTiming(1, 0, 1), [])
