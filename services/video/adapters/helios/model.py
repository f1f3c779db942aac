"""Helios, chunk by chunk: sessions over one loaded pipeline.

Owns: the state of a generation, its beginning, and when it moves on. Does not own: denoising
(`pyramid`), loading, prompts. Enforces: WEIR-351 (chunk by chunk equals one long call), WEIR-352
(constant memory; a generator, a scheduler and a history of its own for each generation), WEIR-357
(a chunk that is stopped or fails leaves the state as it was). Imports torch: import it inside
`load` only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from diffusers.utils.torch_utils import randn_tensor

from contracts.video import VideoCapabilities
from services.video.adapters.base import Frames, Generation, ShouldStop
from services.video.adapters.diffusion.embeddings import PromptEmbeddings, PromptEncoder
from services.video.adapters.diffusion.latents import FeatureCache, WanVideo, picture
from services.video.adapters.diffusion.options import DiffusionOptions
from services.video.adapters.helios.history import History
from services.video.adapters.helios.parameters import (
    EXTRA_PARAMS,
    HeliosParameters,
    HeliosTraits,
    read_parameters,
    spread,
)
from services.video.adapters.helios.pyramid import CHUNK, ChunkTask, Pyramid

FRAMES_PER_SECOND = 24
DEFAULT_WIDTH = 640
DEFAULT_HEIGHT = 384
DEFAULT_NUM_FRAMES = 240


@dataclass(slots=True)
class HeliosState:
    """One generation. `size` is that of its latents, (h, w)."""

    size: tuple[int, int]
    parameters: HeliosParameters
    scheduler: Any
    generator: torch.Generator
    history: History | None
    negative: PromptEmbeddings | None
    chunks: int = 0


class HeliosModel:
    """A `DiffusionModel` over a `HeliosPyramidPipeline`."""

    def __init__(
        self, pipeline: Any, prompts: PromptEncoder, options: DiffusionOptions, name: str
    ) -> None:
        """Raises ValueError when the options do not go with the checkpoint."""
        config = pipeline.scheduler.config
        # The scheduler tells more surely than the index, where older checkpoints lack the entry.
        distilled = type(pipeline.scheduler).__name__ == "HeliosDMDScheduler"
        self._traits = HeliosTraits(stages=config.stages, distilled=distilled)
        self._pipeline = pipeline
        self._prompts = prompts
        self._default_steps = options.steps
        if options.steps is not None:
            spread(options.steps, self._traits.stages)
        self._video = WanVideo(pipeline.vae)
        self._pyramid = Pyramid(pipeline, distilled)
        self._capabilities = self._declare(options, name)

    @property
    def capabilities(self) -> VideoCapabilities:
        """What it can do."""
        return self._capabilities

    @property
    def fewest_steps(self) -> int:
        """One for each stage."""
        return self._traits.stages

    def start(self, generation: Generation) -> HeliosState:
        """Return a new state. Raises ValueError for a parameter of a wrong type or range."""
        parameters = read_parameters(generation, self._traits, self._default_steps)
        device = self._pipeline.transformer.device
        size = (
            generation.height // self._video.spatial,
            generation.width // self._video.spatial,
        )
        generator = torch.Generator(device).manual_seed(generation.seed % 2**64)
        if generation.image is None:
            history = History.empty(self._pipeline.transformer.config.in_channels, *size, device)
        else:
            history = self._begin_with(generation.image, parameters, generator)
        negative = None
        if parameters.guidance_scale > 1.0:
            negative = self._prompts.encode(generation.negative_prompt or "")
        scheduler = type(self._pipeline.scheduler).from_config(self._pipeline.scheduler.config)
        return HeliosState(size, parameters, scheduler, generator, history, negative)

    def next_chunk(
        self, state: HeliosState, prompt: PromptEmbeddings, should_stop: ShouldStop
    ) -> torch.Tensor | None:
        """Return the latents of the next chunk, [1, C, 9, h, w]; None when stopped."""
        if state.history is None:
            raise RuntimeError("the generation is closed")
        # WEIR-357: noise is drawn from a copy, which becomes the state's only with the chunk.
        generator = state.generator.clone_state()
        task = ChunkTask(
            size=state.size,
            first=state.chunks == 0,
            history=state.history,
            prompt=prompt,
            negative=state.negative,
            parameters=state.parameters,
            scheduler=state.scheduler,
            generator=generator,
        )
        latents = self._pyramid.denoise(task, should_stop)
        if latents is None:
            return None
        state.history = state.history.followed_by(latents)
        state.generator = generator
        state.chunks += 1
        return latents

    def decode(self, state: HeliosState, latents: torch.Tensor) -> Frames:
        """Return the 33 frames of a chunk; the model is trained on chunks decoded by themselves."""
        frames: Frames = self._video.decode(latents, FeatureCache())
        return frames

    def close(self, state: HeliosState) -> None:
        """Let go of every tensor."""
        state.history = None
        state.negative = None
        state.scheduler = None

    def _begin_with(
        self, image: Frames, parameters: HeliosParameters, generator: torch.Generator
    ) -> History:
        """Return the history of a video that goes on from a picture, with some noise over it."""
        height, width, _ = image.shape
        pixels = self._pipeline.video_processor.preprocess(picture(image), height, width)
        first, last = self._pipeline.prepare_image_latents(
            pixels,
            latents_mean=self._video.mean,
            latents_std=self._video.scale,
            num_latent_frames_per_chunk=CHUNK,
            dtype=torch.float32,
            device=generator.device,
            generator=generator,
        )
        return History.from_picture(
            _noised(first, parameters, generator), _noised(last, parameters, generator)
        )

    def _declare(self, options: DiffusionOptions, name: str) -> VideoCapabilities:
        frames = self._video.frames_of(CHUNK)
        # Each stage halves the latents, and the coarsest is still cut into patches.
        patch = math.lcm(*self._pipeline.transformer.config.patch_size[1:])
        multiple = self._video.spatial * patch * 2 ** (self._traits.stages - 1)
        return VideoCapabilities(
            model=name,
            frames_per_second=FRAMES_PER_SECOND,
            default_num_frames=options.num_frames or DEFAULT_NUM_FRAMES,
            first_chunk_frames=frames,
            chunk_frames=frames,
            size_multiple=multiple,
            default_width=options.width or DEFAULT_WIDTH,
            default_height=options.height or DEFAULT_HEIGHT,
            image_reference=True,
            options=self._traits.options,
            extra_params=EXTRA_PARAMS,
        )


def _noised(
    latents: torch.Tensor, parameters: HeliosParameters, generator: torch.Generator
) -> torch.Tensor:
    device = latents.device
    low, high = parameters.noise_min, parameters.noise_max
    share = torch.rand(1, device=device, generator=generator) * (high - low) + low
    noise = randn_tensor(latents.shape, generator=generator, device=device)
    noised: torch.Tensor = share * noise + (1 - share) * latents
    return noised
