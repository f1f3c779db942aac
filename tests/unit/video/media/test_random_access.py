"""The trailer, against bytes worked out by hand, and its bound."""

from __future__ import annotations

import pytest

from services.video.media.random_access import RandomAccessPoints
from tests.unit.video.media.parsing import random_access


def test_the_trailer_has_the_bytes_that_the_standard_asks_for() -> None:
    """WEIR-197: times and offsets of 64 bits, and last of all the size of the whole."""
    points = RandomAccessPoints()
    points.add(0, 700)
    points.add(9000, 2**32)
    assert points.trailer() == bytes.fromhex(
        "00000056 6d667261"  # mfra, 86 bytes
        "0000003e 74667261 01000000 00000001 00000000 00000002"  # tfra: track 1, two places
        "0000000000000000 00000000000002bc 01 01 01"
        "0000000000002328 0000000100000000 01 01 01"
        "00000010 6d66726f 00000000 00000056"  # mfro
    )


def test_a_trailer_without_a_place_is_well_formed() -> None:
    """WEIR-197: a stream that ended before its first chunk still gets bytes."""
    trailer = RandomAccessPoints().trailer()
    assert len(trailer) == 48
    assert random_access(trailer) == []


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 1000])
def test_places_are_thinned_evenly_when_there_are_too_many(count: int) -> None:
    """WEIR-199: never more than fit, never fewer than half of them, always the first, one grid."""
    points = RandomAccessPoints(max_points=8)
    for index in range(count):
        points.add(index * 10, index * 100 + 1)
        assert len(points) <= 8
    places = random_access(points.trailer())
    stride = places[1].time // 10 if len(places) > 1 else 1
    assert [place.time // 10 for place in places] == list(range(0, count, stride))
    assert all(place.offset == place.time * 10 + 1 for place in places)
    assert len(places) >= min(count, 4)


def test_every_place_is_kept_while_it_fits() -> None:
    """WEIR-197: a chunk for every picture of half an hour at 60 a second."""
    points = RandomAccessPoints()
    for index in range(30 * 60 * 60):
        points.add(index, index)
    assert len(points) == 108_000


def test_room_for_less_than_two_places_is_refused() -> None:
    """WEIR-199: half of one place would be none."""
    with pytest.raises(ValueError, match="two places"):
        RandomAccessPoints(max_points=1)
