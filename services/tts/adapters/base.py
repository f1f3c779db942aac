"""What a voice adapter is.

Owns: the protocol between the engine and a model, and the values that pass between them. Does not
own: threads, queues, encodings, gRPC (the engine and the servicer do). An adapter is plain blocking
Python; the engine runs it off the event loop and stops it between two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from contracts.capabilities import AUTO, SpeechCapabilities, TaskType

Samples = NDArray[np.float32]
"""Mono samples, shape [n], range -1 to 1, at the adapter's own rate."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A kind-tagged piece of source text; kinds an adapter does not know read as natural."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """One segment to speak. The engine has checked it against the adapter's capabilities.

    `voice` is the name of a declared voice; `language` a declared language or Auto; `speed` is
    within `native_speed` of the adapter (1.0 when it has none: the engine then stretches).
    """

    text: str
    voice: str
    language: str = AUTO
    speed: float = 1.0
    seed: int | None = None
    word_times: bool = False
    pieces: tuple[TextPiece, ...] = ()
    task_type: TaskType = TaskType.CUSTOM_VOICE
    instructions: str | None = None
    reference_audio: bytes | None = None
    reference_text: str | None = None
    x_vector_only: bool | None = None
    speaker_embedding: tuple[float, ...] | None = None
    max_new_tokens: int | None = None
    initial_codec_chunk_frames: int | None = None
    non_streaming_mode: bool | None = None


@dataclass(frozen=True, slots=True)
class AudioStep:
    """The next samples, in order. May be empty: a step that only gives a place to stop."""

    samples: Samples


@dataclass(frozen=True, slots=True)
class Word:
    """One word as it stands in the source, with its time in seconds from the first sample."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class WordTimesStep:
    """The whole list of words; at most one such step. `None`: this text could not be aligned."""

    words: tuple[Word, ...] | None


Step = AudioStep | WordTimesStep


class VoiceAdapter(Protocol):
    """A voice model. The constructor must be cheap; heavy imports and weights belong in `load`.

    `capabilities` may be read only after `load`. `native_speed` is the inclusive range of `speed`
    the model itself can speak at, None when it has none. `concurrency` is how many utterances may
    be in `synthesize` at once, each on its own thread.
    """

    @property
    def capabilities(self) -> SpeechCapabilities:
        """What the loaded model can do."""
        ...

    @property
    def native_speed(self) -> tuple[float, float] | None:
        """Inclusive range of speeds that the model speaks by itself."""
        ...

    @property
    def concurrency(self) -> int:
        """How many utterances may be synthesized at once."""
        ...

    def load(self) -> None:
        """Load weights and warm up. Blocks. Raises ModelUnavailableError with what is missing."""
        ...

    def synthesize(self, utterance: Utterance) -> Iterator[Step]:
        """Speak one utterance, step by step.

        Text that has no sound gives valid, possibly empty audio. The engine closes the iterator
        (GeneratorExit) when the request is cancelled; no step may take longer than the model's own
        smallest unit of work. With `word_times` one WordTimesStep is yielded.
        """
        ...

    def close(self) -> None:
        """Free everything; called once, also after a failed `load`."""
        ...


class ModelUnavailableError(Exception):
    """The model cannot be loaded; the message says what is missing and what then does not work."""
