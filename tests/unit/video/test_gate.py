"""When the next chunk may be made, with times that the test names."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.generation import WaitReason
from contracts.video import Pace
from services.video.gate import ChunkPlace, Gate, Pacing


def gate(**changes: Any) -> Gate:
    """Return a gate of chunks of 3, then 4 frames at 4 frames a second."""
    fields: dict[str, Any] = {
        "frame_rate": Fraction(4),
        "num_frames": None,
        "first_chunk_frames": 3,
        "chunk_frames": 4,
        "initial_credits": 1000,
    }
    return Gate(Pacing(**{**fields, **changes}))


def begun(made: Gate, count: int) -> Gate:
    """Begin `count` chunks."""
    for _ in range(count):
        made.begin_chunk()
    return made


LENGTHS = [
    (1, [1]),
    (3, [3]),
    (4, [3, 1]),
    (7, [3, 4]),
    (9, [3, 4, 2]),
    (11, [3, 4, 4]),
]


@pytest.mark.parametrize(("num_frames", "sizes"), LENGTHS)
def test_the_last_chunk_is_trimmed(num_frames: int, sizes: list[int]) -> None:
    """WEIR-224: exactly the frames asked for, then none."""
    made = gate(num_frames=num_frames)
    seen = []
    while made.next_frames:
        seen.append(made.begin_chunk().num_frames)
    assert seen == sizes
    assert made.frames == num_frames


def test_an_endless_video_has_whole_chunks_for_ever() -> None:
    """WEIR-224: and each knows its place."""
    made = begun(gate(), 100)
    assert made.begin_chunk() == ChunkPlace(100, 3 + 99 * 4, 4)


@given(st.integers(1, 500), st.integers(1, 40), st.integers(1, 40))
def test_the_chunks_add_up(num_frames: int, first: int, later: int) -> None:
    """WEIR-224: whatever the sizes are; no chunk is empty and no place is missing."""
    made = gate(num_frames=num_frames, first_chunk_frames=first, chunk_frames=later)
    at = 0
    while made.next_frames:
        place = made.begin_chunk()
        assert place.first_frame == at
        assert 1 <= place.num_frames <= (later if place.index else first)
        at += place.num_frames
    assert at == num_frames


def test_a_chunk_needs_a_credit() -> None:
    """WEIR-222: initial ones and those that come later count alike."""
    made = gate(initial_credits=2)
    assert made.blocked(0) is None
    begun(made, 2)
    assert made.blocked(0) is WaitReason.CREDIT
    made.grant(1)
    assert made.blocked(0) is None
    begun(made, 1)
    assert made.blocked(0) is WaitReason.CREDIT


def test_a_pause_comes_before_every_other_reason() -> None:
    """WEIR-230: and goes when it is taken back."""
    made = begun(gate(initial_credits=1, pace=Pace.REALTIME), 1)
    made.paused = True
    assert made.blocked(0) is WaitReason.PAUSE
    assert made.opens_at(0) is None
    made.paused = False
    assert made.blocked(0) is WaitReason.PLAYBACK
    made.report(100.0)
    assert made.blocked(0) is WaitReason.CREDIT


# Chunks end at 0.75, 1.75, 2.75, ... seconds; a frame lasts 0.25.
REPORTS = [
    (2.0, 0.0, 2),
    (2.0, 0.74, 2),
    (2.0, 0.75, 3),
    (2.0, 10.0, 12),
    (0.0, 0.0, 1),
    (0.0, 0.49, 1),
    (0.0, 0.5, 2),
    (0.0, 1.5, 3),
    (30.0, 0.0, 30),
]


@pytest.mark.parametrize(("lead_s", "position_s", "chunks"), REPORTS)
def test_the_lead_over_a_report_is_bounded(lead_s: float, position_s: float, chunks: int) -> None:
    """WEIR-223: at most `lead_seconds`, or one chunk where that is more; time changes nothing."""
    made = gate(pace=Pace.REALTIME, lead_seconds=lead_s)
    made.report(position_s)
    count = 0
    while made.blocked(1e9) is None:
        made.begin_chunk()
        count += 1
    assert count == chunks
    assert made.opens_at(1e9) is None


def test_before_any_report_the_clock_since_the_first_chunk_counts() -> None:
    """WEIR-223: a chunk may be made as soon as the lead allows it, and not before."""
    made = begun(gate(pace=Pace.REALTIME, lead_seconds=1.0), 1)
    assert made.blocked(50.0) is WaitReason.PLAYBACK
    assert made.opens_at(50.0) is None, "nothing plays yet, so time alone opens nothing"
    made.first_chunk_left(100.0)
    made.first_chunk_left(200.0)
    # The next chunk begins at 0.75 s, one frame before that it may be made.
    assert made.opens_at(100.0) == 100.5
    assert made.blocked(100.4) is WaitReason.PLAYBACK
    assert made.blocked(100.5) is None
    assert made.opens_at(100.5) is None
    made.report(0.0)
    assert made.blocked(1e9) is WaitReason.PLAYBACK


def test_a_free_pace_looks_at_no_clock() -> None:
    """WEIR-223: reports and time change nothing."""
    made = begun(gate(), 50)
    made.first_chunk_left(0.0)
    made.report(0.0)
    assert made.blocked(0.0) is None
    assert made.opens_at(0.0) is None
