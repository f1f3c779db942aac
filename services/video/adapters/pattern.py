"""The `pattern` adapter: flat frames whose colour is the prompt state, and a mark that counts them.

Owns: deterministic frames, settable speed and settable faults, for tests and load measurements.
Does not own: any model; it needs numpy alone. Enforces: the adapter protocol's promises (state
moves on only with a chunk, `should_stop` is asked between steps), WEIR-221 (the prompt state, the
number of each frame and the seed can be read back from the pixels of a coded and decoded video).

A prompt that holds `#rrggbb` is that colour; any other is a colour that follows from its text. In
the lowest eighth of a frame 16 cells, black or white, are its number in binary; the eighth above
that shows the seed. All the rest is the colour of the prompt.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contracts.video import VideoCapabilities
from services.runtime.adapter_options import read_options
from services.video.adapters.base import (
    Frames,
    Generation,
    ModelUnavailableError,
    ShouldStop,
)
from services.video.adapters.settings import AdapterSettings

Colour = tuple[float, float, float]
"""Red, green and blue, 0 to 255."""

CELLS = 16
"""Bits of a row of cells; the width is at least twice as many pixels."""
STRIP = 8
"""A row of cells is this part of the height."""

_HEX = re.compile(r"#([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})")


class PatternFailureError(RuntimeError):
    """The fault that the settings asked for."""


@dataclass(frozen=True, slots=True)
class PatternSettings:
    """How the pattern adapter behaves. Times in seconds.

    A chunk has `steps` denoising steps, unless the request says how many; each takes `step_time_s`
    plus its share of `real_time_factor` times the length of the chunk. `decode_time_s` is that of
    a chunk, `prompt_time_s` of a prompt, `start_time_s` of a generation. Chunk `fail_chunk` fails
    in its last step, chunk `fail_decode` when it is decoded (both from 0); a prompt with
    `fail_marker` in it cannot be encoded. `fail_times` bounds how many chunks fail in all.
    """

    frames_per_second: int = 24
    num_frames: int = 120
    max_num_frames: int | None = None
    first_chunk_frames: int = 9
    chunk_frames: int = 12
    size_multiple: int = 16
    width: int = 320
    height: int = 192
    steps: int = 4
    step_time_s: float = 0.0
    real_time_factor: float = 0.0
    decode_time_s: float = 0.0
    prompt_time_s: float = 0.0
    start_time_s: float = 0.0
    load_time_s: float = 0.0
    fail_load: bool = False
    fail_chunk: int | None = None
    fail_decode: int | None = None
    fail_marker: str | None = None
    fail_times: int | None = None
    prompt_updates: bool = True
    transition_chunks: int = 3
    image_reference: bool = True

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError("steps is at least 1")
        if min(self.width, self.height, self.size_multiple) < 1 or self.width < 2 * CELLS:
            raise ValueError(f"a pattern is at least {2 * CELLS} pixels wide")
        for name in ("step_time_s", "real_time_factor", "decode_time_s", "prompt_time_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is at least 0")
        for name in ("start_time_s", "load_time_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is at least 0")
        self.capabilities()

    def capabilities(self) -> VideoCapabilities:
        """Return what the adapter declares. Raises ValueError when that contradicts itself."""
        return VideoCapabilities(
            model="pattern",
            frames_per_second=self.frames_per_second,
            default_num_frames=self.num_frames,
            max_num_frames=self.max_num_frames,
            first_chunk_frames=self.first_chunk_frames,
            chunk_frames=self.chunk_frames,
            size_multiple=self.size_multiple,
            default_width=self.width,
            default_height=self.height,
            prompt_updates=self.prompt_updates,
            default_transition_chunks=self.transition_chunks,
            image_reference=self.image_reference,
            options=frozenset({"negative_prompt", "num_inference_steps"}),
            extra_params=frozenset({"inverted"}),
            event_fields=frozenset({"brightness"}),
        )


@dataclass(slots=True)
class PatternState:
    """One generation: what was asked for and how far it is."""

    generation: Generation
    steps: int
    inverted: bool
    chunks: int = 0
    frames: int = 0


@dataclass(frozen=True, slots=True)
class PatternLatents:
    """One chunk before it is drawn."""

    chunk: int
    first_frame: int
    num_frames: int
    colour: Colour


class PatternAdapter:
    """A `VideoAdapter` without a model. `pattern` overrides what `settings.options` say."""

    def __init__(self, settings: AdapterSettings, pattern: PatternSettings | None = None) -> None:
        self._pattern = pattern or read_options(PatternSettings, settings.options)
        self._unloaded = threading.Event()
        self._lock = threading.Lock()
        self._failures_left = self._pattern.fail_times
        self._capabilities: VideoCapabilities | None = None

    @property
    def capabilities(self) -> VideoCapabilities:
        """What it can do; RuntimeError before `load`."""
        if self._capabilities is None:
            raise RuntimeError("capabilities are known after load")
        return self._capabilities

    def load(self) -> None:
        """Take the set time, then be ready or fail as told. `unload` ends the wait."""
        self._unloaded.wait(self._pattern.load_time_s)
        if self._pattern.fail_load:
            raise ModelUnavailableError("the pattern adapter was told to fail its load")
        self._capabilities = self._pattern.capabilities()

    def encode_prompt(self, text: str) -> Colour:
        """Return the colour of a prompt. Raises ValueError when it holds the fail marker."""
        self._unloaded.wait(self._pattern.prompt_time_s)
        marker = self._pattern.fail_marker
        if marker is not None and marker in text:
            raise ValueError("the pattern adapter was told to fail on this prompt")
        return colour_of(text)

    def encode_event(self, text: str, fields: Mapping[str, object]) -> Colour:
        """Return the colour of a prompt times `brightness`, 0 to 1. Raises ValueError."""
        brightness = fields.get("brightness", 1)
        if isinstance(brightness, bool) or not isinstance(brightness, int | float):
            raise ValueError("brightness is a number")
        if not 0 <= brightness <= 1:
            raise ValueError("brightness is 0 to 1")
        red, green, blue = self.encode_prompt(text)
        return (red * brightness, green * brightness, blue * brightness)

    def blend(self, source: Colour, target: Colour, progress: float) -> Colour:
        """Return the colour on the straight line between the two."""
        red, green, blue = (a + (b - a) * progress for a, b in zip(source, target, strict=True))
        return (red, green, blue)

    def start(self, generation: Generation, prompt: Colour) -> PatternState:
        """Return a new state. Raises ValueError unless `inverted` is a truth value."""
        self._unloaded.wait(self._pattern.start_time_s)
        inverted = generation.extra_params.get("inverted", False)
        if not isinstance(inverted, bool):
            raise ValueError("inverted is true or false")
        steps = int(generation.options.get("num_inference_steps", self._pattern.steps))
        return PatternState(generation, steps, inverted)

    def next_chunk(
        self, state: PatternState, prompt: Colour, should_stop: ShouldStop
    ) -> PatternLatents | None:
        """Take the time of the steps, asking between them; the state moves on at the end."""
        pattern = self._pattern
        count = pattern.chunk_frames if state.chunks else pattern.first_chunk_frames
        seconds = float(count / state.generation.frame_rate)
        step_s = pattern.step_time_s + pattern.real_time_factor * seconds / state.steps
        for step in range(state.steps):
            if step and should_stop():
                return None
            if step_s:
                self._unloaded.wait(step_s)
        self._fail_if_told(pattern.fail_chunk, state.chunks)
        latents = PatternLatents(state.chunks, state.frames, count, prompt)
        state.chunks += 1
        state.frames += count
        return latents

    def decode(self, state: PatternState, latents: PatternLatents) -> Frames:
        """Draw the frames of a chunk."""
        self._unloaded.wait(self._pattern.decode_time_s)
        self._fail_if_told(self._pattern.fail_decode, latents.chunk)
        generation = state.generation
        frames: Frames = np.empty(
            (latents.num_frames, generation.height, generation.width, 3), np.uint8
        )
        frames[:] = np.rint(np.clip(np.array(latents.colour), 0, 255)).astype(np.uint8)
        if latents.first_frame == 0 and generation.image is not None:
            frames[0] = generation.image
        if state.inverted:
            np.subtract(255, frames, out=frames)
        strip = max(1, generation.height // STRIP)
        frames[:, -2 * strip : -strip] = _cells(generation.seed, generation.width)
        for index, frame in enumerate(frames, start=latents.first_frame):
            frame[-strip:] = _cells(index, generation.width)
        return frames

    def close(self, state: PatternState) -> None:
        """Have nothing to free but the picture."""
        state.generation = Generation(
            state.generation.width,
            state.generation.height,
            state.generation.frame_rate,
            state.generation.seed,
        )

    def unload(self) -> None:
        """End every wait."""
        self._unloaded.set()

    def _fail_if_told(self, chunk: int | None, index: int) -> None:
        if chunk is None or chunk != index:
            return
        with self._lock:
            if self._failures_left == 0:
                return
            if self._failures_left is not None:
                self._failures_left -= 1
        raise PatternFailureError("the pattern adapter was told to fail in this chunk")


def colour_of(text: str) -> Colour:
    """Return the colour that a prompt stands for: its first `#rrggbb`, or one of its own."""
    found = _HEX.search(text)
    if found is not None:
        red, green, blue = (float(int(part, 16)) for part in found.groups())
        return (red, green, blue)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    red, green, blue = (float(value) for value in digest)
    return (red, green, blue)


def number_in(row: NDArray[np.generic]) -> int:
    """Return the number that one row of a strip shows: brightness [W], 0 to 255."""
    cells = np.array_split(np.asarray(row, np.float64), CELLS)
    return sum(1 << bit for bit, cell in enumerate(reversed(cells)) if cell.mean() > 127)


def _cells(number: int, width: int) -> NDArray[np.uint8]:
    """Return one row of a strip, [1, W, 3], that shows the low bits of `number`."""
    bits = [(number >> bit) & 1 for bit in reversed(range(CELLS))]
    sizes = [len(part) for part in np.array_split(np.empty(width), CELLS)]
    row = np.repeat(np.array(bits, np.uint8) * 255, sizes)
    return np.broadcast_to(row[None, :, None], (1, width, 3))
