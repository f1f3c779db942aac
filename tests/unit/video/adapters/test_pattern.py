"""The pattern itself, without a service around it."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from services.runtime.adapter_options import read_options
from services.video.adapters.base import Generation, ModelUnavailableError
from services.video.adapters.pattern import (
    PatternFailureError,
    PatternSettings,
    colour_of,
    number_in,
)
from tests.unit.video.support import pattern

GENERATION = Generation(64, 64, Fraction(24), 77)
GREY = (100.0, 100.0, 100.0)


def test_a_prompt_is_the_colour_it_names_or_one_of_its_own() -> None:
    """WEIR-221: the first `#rrggbb`; otherwise always the same, and different for others."""
    assert colour_of("a #10ff03 street, not #000000") == (16, 255, 3)
    assert colour_of("rain") == colour_of("rain")
    assert len({colour_of(f"scene {index}") for index in range(50)}) == 50


def test_a_blend_is_on_the_straight_line() -> None:
    """WEIR-143: linear, and neither end is changed."""
    assert pattern().blend((0, 100, 200), (100, 0, 200), 0.25) == (25, 75, 200)


def test_frames_show_colour_number_and_seed() -> None:
    """WEIR-221: over chunks; numbers go on."""
    adapter = pattern()
    state = adapter.start(GENERATION, GREY)
    shown = []
    for size in (3, 4, 4):
        latents = adapter.next_chunk(state, GREY, lambda: False)
        assert latents is not None
        frames = adapter.decode(state, latents)
        assert frames.shape == (size, 64, 64, 3)
        assert (frames[:, :48] == 100).all()
        shown += [number_in(frame[-1, :, 0]) for frame in frames]
        assert {number_in(frame[-12, :, 0]) for frame in frames} == {77}
    assert shown == list(range(11))


def test_the_state_moves_on_only_with_a_chunk() -> None:
    """WEIR-235: stopped between two steps, it makes the same chunk later."""
    adapter = pattern(steps=5)
    state = adapter.start(GENERATION, GREY)
    asked: list[int] = []

    def stop_at_third() -> bool:
        asked.append(1)
        return len(asked) == 3

    assert adapter.next_chunk(state, GREY, stop_at_third) is None
    assert len(asked) == 3
    assert (state.chunks, state.frames) == (0, 0)
    latents = adapter.next_chunk(state, GREY, lambda: False)
    assert latents is not None
    assert (latents.first_frame, latents.num_frames) == (0, 3)


def test_the_first_frame_may_be_a_picture() -> None:
    """WEIR-226: frame 0 alone, strips aside."""
    image = np.full((64, 64, 3), 9, np.uint8)
    adapter = pattern()
    state = adapter.start(Generation(64, 64, Fraction(24), 1, image=image), GREY)
    latents = adapter.next_chunk(state, GREY, lambda: False)
    assert latents is not None
    frames = adapter.decode(state, latents)
    assert (frames[0, :48] == 9).all()
    assert (frames[1, :48] == 100).all()
    assert (image == 9).all()


def test_the_count_of_steps_can_be_asked_for() -> None:
    """WEIR-225: one question between each two steps."""
    adapter = pattern(steps=2)
    asked: list[int] = []

    def go_on() -> bool:
        asked.append(1)
        return False

    wanted = Generation(64, 64, Fraction(24), 1, options={"num_inference_steps": 7})
    assert adapter.next_chunk(adapter.start(wanted, GREY), GREY, go_on) is not None
    assert len(asked) == 6


FAULTS = [
    ({"fail_chunk": 0}, "next_chunk"),
    ({"fail_decode": 0}, "decode"),
]


@pytest.mark.parametrize(("settings", "where"), FAULTS)
def test_faults_come_where_they_are_set_and_as_often(settings: dict[str, Any], where: str) -> None:
    """WEIR-236: `fail_times` bounds them."""
    adapter = pattern(fail_times=1, **settings)
    state = adapter.start(GENERATION, GREY)

    def make() -> None:
        latents = adapter.next_chunk(state, GREY, lambda: False)
        assert latents is not None
        adapter.decode(state, latents)

    with pytest.raises(PatternFailureError):
        make()
    assert state.chunks == (1 if where == "decode" else 0)
    make()


def test_prompts_and_loads_fail_as_told() -> None:
    """WEIR-237: a ValueError for a prompt, ModelUnavailableError for the model."""
    adapter = pattern(fail_marker="!")
    with pytest.raises(ValueError, match="told to fail"):
        adapter.encode_prompt("no!")
    with pytest.raises(ModelUnavailableError, match="told to fail"):
        pattern(fail_load=True).load()
    with pytest.raises(RuntimeError, match="after load"):
        _ = adapter.capabilities


@pytest.mark.parametrize("value", [True, "x", -0.1, 1.1])
def test_brightness_is_a_share(value: object) -> None:
    """WEIR-229: anything else is a prompt that cannot be read."""
    adapter = pattern()
    with pytest.raises(ValueError, match="brightness"):
        adapter.encode_event("#ffffff", {"brightness": value})
    assert adapter.encode_event("#c80000", {"brightness": 0.5}) == (100, 0, 0)


def test_unloading_ends_every_wait() -> None:
    """WEIR-080: a load that would take minutes ends at once."""
    adapter = pattern(load_time_s=300.0)
    adapter.unload()
    begun = time.monotonic()
    adapter.load()
    assert time.monotonic() - begun < 5
    assert adapter.capabilities.model == "pattern"


WRONG = [
    {"steps": "0"},
    {"step_time_s": "-1"},
    {"step_time_s": "nan"},
    {"width": "16"},
    {"chunk_frames": "0"},
    {"width": "321"},
    {"colour": "red"},
]


@pytest.mark.parametrize("options", WRONG)
def test_options_that_cannot_be_are_refused(options: dict[str, str]) -> None:
    """WEIR-050: when the adapter is made, not when it is used."""
    with pytest.raises(ValueError, match=r".+"):
        read_options(PatternSettings, options)
