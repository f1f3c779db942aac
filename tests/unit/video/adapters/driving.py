"""Driving a diffusion adapter in a test: making it, and its chunks as latents and frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from services.video.adapters.base import Frames, Generation
from services.video.adapters.diffusion.adapter import DiffusionAdapter
from services.video.adapters.settings import AdapterSettings
from tests.conformance.video_adapters.tiny import SIZE, tiny_options

Adapter = TypeVar("Adapter", bound=DiffusionAdapter[Any])

PROMPT = "red sky over a calm sea"
SEED = 7


def loaded(kind: Callable[[AdapterSettings], Adapter], folder: Path, **options: str) -> Adapter:
    """Return the adapter with a checkpoint loaded from `folder`."""
    adapter = kind(AdapterSettings(folder, "cpu", tiny_options(folder, **options)))
    adapter.load()
    return adapter


def asked(**changes: Any) -> Generation:
    """Return a generation of the least size."""
    values: dict[str, Any] = {"width": SIZE, "height": SIZE, "frame_rate": Fraction(24)}
    return Generation(**{**values, "seed": SEED, **changes})


def gradient() -> Frames:
    """Return a picture of the least size, dark above and light below."""
    rows = np.linspace(0, 255, SIZE, dtype=np.uint8)[:, None, None]
    return np.broadcast_to(rows, (SIZE, SIZE, 3)).copy()


def eight_bits(video: Any) -> Frames:
    """Return frames of 0 to 1 as eight bits, as a pipeline does when it makes pictures."""
    frames: Frames = np.rint(np.asarray(video) * 255).astype(np.uint8)
    return frames


@dataclass(slots=True)
class Stops:
    """A `should_stop` that says so at the given questions, counted from 1."""

    at: Sequence[int] = ()
    asked: int = field(default=0)

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked in self.at


@dataclass(slots=True)
class Made:
    """Chunks of a generation: latents [1, C, T, h, w] and frames."""

    latents: list[Any]
    frames: list[Frames]


def chunks(
    adapter: DiffusionAdapter[Any], generation: Generation, count: int, should_stop: Stops
) -> Made:
    """Generate `count` chunks, trying again whenever one is stopped."""
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(generation, prompt)
    made = Made([], [])
    while len(made.latents) < count:
        latents = adapter.next_chunk(state, prompt, should_stop)
        if latents is not None:
            made.latents.append(latents)
            made.frames.append(adapter.decode(state, latents))
    adapter.close(state)
    return made
