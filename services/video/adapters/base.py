"""What a video adapter is.

Owns: the protocol between the engine and a model, and the values that pass between them. Does not
own: the prompt timeline, threads, encoding, gRPC. An adapter is plain blocking Python: the engine
calls `start`, `blend` and `next_chunk` on its generation thread, `decode` on its encoding thread,
`encode_prompt` on its prompt thread and `close` on its closing thread; these may run at the same
time, each by itself. `close` comes when no other call has the state, or any will have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from contracts.video import VideoCapabilities

Frames = NDArray[np.uint8]
"""RGB frames, shape [T, H, W, 3]."""

Prompt = TypeVar("Prompt")
"""A prompt state: what `encode_prompt` makes and `blend` mixes; immutable."""
Encoded = TypeVar("Encoded", covariant=True)
Latents = TypeVar("Latents")
"""What `next_chunk` makes and `decode` turns into frames."""
State = TypeVar("State")
"""Everything the model remembers of one generation."""

ShouldStop = Callable[[], bool]
"""Asked between two denoising steps; counts as a sign of life."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What to generate; the engine has checked it against the capabilities.

    `image` is the first frame, shape [H, W, 3], already of the generation's size; `options` holds
    only declared fields and `extra_params` only declared names.
    """

    width: int
    height: int
    frame_rate: Fraction
    seed: int
    negative_prompt: str | None = None
    image: Frames | None = None
    options: Mapping[str, int | float] = field(default_factory=dict)
    extra_params: Mapping[str, object] = field(default_factory=dict)


class VideoAdapter(Protocol, Generic[Prompt, Latents, State]):
    """A video model. The constructor must be cheap; heavy imports and weights belong in `load`."""

    @property
    def capabilities(self) -> VideoCapabilities:
        """What the loaded model can do; readable after `load`."""
        ...

    def load(self) -> None:
        """Load weights and warm up. Blocks. Raises ModelUnavailableError with what is missing."""
        ...

    def encode_prompt(self, text: str) -> Prompt:
        """Turn a prompt into a state. Raises ValueError for a text that the model cannot read."""
        ...

    def blend(self, source: Prompt, target: Prompt, progress: float) -> Prompt:
        """Return the state between two others, 0 < progress < 1; changes neither."""
        ...

    def start(self, generation: Generation, prompt: Prompt) -> State:
        """Return the state of a new generation. Raises ValueError for parameters it refuses."""
        ...

    def next_chunk(self, state: State, prompt: Prompt, should_stop: ShouldStop) -> Latents | None:
        """Generate one chunk with this prompt state; None when `should_stop` said so.

        The state moves on only when a chunk is returned. `should_stop` is asked at least once
        between two denoising steps.
        """
        ...

    def decode(self, state: State, latents: Latents) -> Frames:
        """Return the frames of a chunk; called once per chunk, in order."""
        ...

    def close(self, state: State) -> None:
        """Free what one generation holds; called once."""
        ...

    def unload(self) -> None:
        """Free everything; called once, also after a failed `load`."""
        ...


class EventAdapter(Protocol[Encoded]):
    """What a video adapter is in addition when it declares `event_fields`."""

    def encode_event(self, text: str, fields: Mapping[str, object]) -> Encoded:
        """Turn a prompt with declared event fields into a state. Raises ValueError as above."""
        ...


class ModelUnavailableError(Exception):
    """The model cannot be loaded; the message says what is missing and what then does not work."""
