"""What every diffusion adapter does the same way, around a model that differs.

Owns: options, loading, warming up, prompts and their mixing, the checks of a generation. Does not
own: denoising and what a state is (`DiffusionModel`, one a family). Enforces: WEIR-359 (no model
library is imported before `load`), WEIR-354 (unknown parameters are refused), WEIR-355 (a model
that cannot generate is not called loaded).
"""

from __future__ import annotations

import gc
import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from contracts.video import VideoCapabilities
from services.runtime.adapter_options import read_options
from services.video.adapters.base import Frames, Generation, ModelUnavailableError, ShouldStop
from services.video.adapters.diffusion.checkpoint import find_source, load_pipeline
from services.video.adapters.diffusion.options import DiffusionOptions
from services.video.adapters.diffusion.parameters import check_generation
from services.video.adapters.settings import AdapterSettings

if TYPE_CHECKING:
    import torch

    from services.video.adapters.diffusion.embeddings import PromptEmbeddings, PromptEncoder

State = TypeVar("State")


class DiffusionModel(Protocol, Generic[State]):
    """A loaded model; its methods promise what those of `VideoAdapter` do."""

    @property
    def capabilities(self) -> VideoCapabilities:
        """What it can do."""
        ...

    @property
    def fewest_steps(self) -> int:
        """Denoising steps of the cheapest chunk."""
        ...

    def start(self, generation: Generation) -> State:
        """Return the state of a new generation, which has been checked. Without gradients."""
        ...

    def next_chunk(
        self, state: State, prompt: PromptEmbeddings, should_stop: ShouldStop
    ) -> torch.Tensor | None:
        """Return the latents of a chunk, [1, C, T, h, w]; None when stopped. Without gradients."""
        ...

    def decode(self, state: State, latents: torch.Tensor) -> Frames:
        """Return the frames of a chunk."""
        ...

    def close(self, state: State) -> None:
        """Free the state."""
        ...


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[State]):
    model: DiffusionModel[State]
    prompts: PromptEncoder
    inference: Callable[[], AbstractContextManager[object]]
    """In which torch keeps nothing for gradients."""


class DiffusionAdapter(ABC, Generic[State]):
    """A `VideoAdapter` of one diffusers pipeline; a subclass says which, and what runs it."""

    pipeline: ClassVar[str]
    """Name of the pipeline's class in diffusers."""
    default_model: ClassVar[str]
    """Checkpoint of the hub that is loaded when the options name none."""

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        self._options = read_options(DiffusionOptions, settings.options)
        self._loaded: _Loaded[State] | None = None

    @abstractmethod
    def make_model(
        self, pipeline: Any, prompts: PromptEncoder, options: DiffusionOptions, name: str
    ) -> DiffusionModel[State]:
        """Return what runs `pipeline`. Raises ModelUnavailableError for a pipeline it cannot."""

    @property
    def capabilities(self) -> VideoCapabilities:
        """What the loaded model can do; RuntimeError before `load`."""
        return self._ready().model.capabilities

    def load(self) -> None:
        """Load the checkpoint and generate two chunks of the default size to warm up.

        Raises ModelUnavailableError with what is missing.
        """
        source = find_source(self._options.model or self.default_model, self._settings.model_dir)
        pipeline = load_pipeline(self.pipeline, source, self._settings.device, self._options)
        # WEIR-359: what imports torch at its top is imported here.
        embeddings = importlib.import_module("services.video.adapters.diffusion.embeddings")
        prompts: PromptEncoder = embeddings.PromptEncoder(pipeline, self._options)
        try:
            model = self.make_model(pipeline, prompts, self._options, source.name)
        except ValueError as error:
            raise ModelUnavailableError(f"{source.name}: {error}") from error
        inference = importlib.import_module("torch").inference_mode
        self._loaded = _Loaded(model, prompts, inference)
        if self._options.warm_up:
            self._warm_up(source.name)

    def encode_prompt(self, text: str) -> PromptEmbeddings:
        """Return the embeddings of `text`. Raises ValueError when it has too many tokens."""
        return self._ready().prompts.encode(text)

    def blend(
        self, source: PromptEmbeddings, target: PromptEmbeddings, progress: float
    ) -> PromptEmbeddings:
        """Return the embeddings between two, mixed as the option `blend` says."""
        from services.video.adapters.diffusion.embeddings import blend

        return blend(source, target, progress, self._options.blend)

    def start(self, generation: Generation, prompt: PromptEmbeddings) -> State:
        """Return the state of a new generation. Raises ValueError for parameters it refuses."""
        loaded = self._ready()
        check_generation(generation, loaded.model.capabilities)
        with loaded.inference():
            return loaded.model.start(generation)

    def next_chunk(
        self, state: State, prompt: PromptEmbeddings, should_stop: ShouldStop
    ) -> torch.Tensor | None:
        """Return the latents of the next chunk, [1, C, T, h, w]; None when stopped."""
        loaded = self._ready()
        with loaded.inference():
            return loaded.model.next_chunk(state, prompt, should_stop)

    def decode(self, state: State, latents: torch.Tensor) -> Frames:
        """Return the frames of a chunk."""
        return self._ready().model.decode(state, latents)

    def close(self, state: State) -> None:
        """Free what a generation holds. Nothing to do after `unload`."""
        if self._loaded is not None:
            self._loaded.model.close(state)

    def unload(self) -> None:
        """Free the model. Also after a failed `load`, any number of times."""
        self._loaded = None
        gc.collect()  # the parts of a pipeline refer to one another
        torch = sys.modules.get("torch")  # a load that failed may never have come to it
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.empty_cache()

    def _ready(self) -> _Loaded[State]:
        if self._loaded is None:
            raise RuntimeError("the video model is not loaded")
        return self._loaded

    def _warm_up(self, name: str) -> None:
        model = self._ready().model
        capabilities = model.capabilities
        generation = Generation(
            capabilities.default_width,
            capabilities.default_height,
            Fraction(capabilities.frames_per_second),
            seed=0,
            options={"num_inference_steps": model.fewest_steps},
        )
        size = f"{generation.width}x{generation.height}"
        try:
            prompt = self.encode_prompt("warm up")
            state = self.start(generation, prompt)
            for _ in range(2):  # the second one has a past, which may need more memory
                latents = self.next_chunk(state, prompt, _never)
                if latents is not None:
                    self.decode(state, latents)
            self.close(state)
        except Exception as error:
            # WEIR-355: better found now than in the first request.
            self._loaded = None
            raise ModelUnavailableError(
                f"{name} was loaded but cannot generate {size} here ({type(error).__name__}: "
                f"{str(error)[:300]}); no video can be generated"
            ) from error


def _never() -> bool:
    return False
