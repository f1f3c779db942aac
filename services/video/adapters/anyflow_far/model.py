"""AnyFlow-FAR, chunk by chunk: generations over one loaded pipeline.

Owns: the state of a generation, denoising a chunk, and when the state moves on. Does not own: the
memory's layout (`context`), loading, prompts. Enforces: WEIR-351 (chunk by chunk equals one long
call), WEIR-352 (constant memory, a scheduler of its own), WEIR-357 (a chunk that is stopped or
fails leaves the state as it was; it asks before every step whether to go on), WEIR-358 (the video
ends with the last chunk that the checkpoint knows). Imports torch: import it inside `load` only.

The steps follow `AnyFlowFARPipeline.__call__`, which cannot be used for this: it makes the whole
video, keeps the first prompt whatever its callback returns, and shares one scheduler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from diffusers.utils.torch_utils import randn_tensor

from contracts.video import VideoCapabilities
from services.video.adapters.anyflow_far.context import Context, Layout, both
from services.video.adapters.anyflow_far.parameters import (
    OPTIONS,
    FarParameters,
    read_parameters,
)
from services.video.adapters.base import Frames, Generation, ShouldStop
from services.video.adapters.diffusion.embeddings import PromptEmbeddings, PromptEncoder
from services.video.adapters.diffusion.latents import FeatureCache, WanVideo, picture
from services.video.adapters.diffusion.options import DiffusionOptions

FRAMES_PER_SECOND = 16
DEFAULT_WIDTH = 832
DEFAULT_HEIGHT = 480


@dataclass(slots=True)
class FarState:
    """One generation. `noise` is that of the whole video, [1, T, C, h, w].

    `picture` are the latents of a first frame that is given, [1, 1, C, h, w].
    """

    layout: Layout
    parameters: FarParameters
    scheduler: Any
    noise: torch.Tensor | None
    context: Context | None
    features: FeatureCache
    negative: PromptEmbeddings | None
    picture: torch.Tensor | None
    chunks: int = 0


class FarModel:
    """A `DiffusionModel` over an `AnyFlowFARPipeline`."""

    def __init__(
        self, pipeline: Any, prompts: PromptEncoder, options: DiffusionOptions, name: str
    ) -> None:
        """Raises ValueError when the options or the checkpoint's chunks are unusable."""
        self._pipeline = pipeline
        self._transformer = pipeline.transformer
        self._prompts = prompts
        self._default_steps = options.steps
        self._video = WanVideo(pipeline.vae)
        self._partition = tuple(self._transformer.config.chunk_partition)
        self._capabilities = self._declare(options, name)

    @property
    def capabilities(self) -> VideoCapabilities:
        """What it can do."""
        return self._capabilities

    @property
    def fewest_steps(self) -> int:
        """A flow map can go all the way at once."""
        return 1

    def start(self, generation: Generation) -> FarState:
        """Return a new state. Raises ValueError for an option of a wrong type or range."""
        parameters = read_parameters(generation, self._default_steps)
        spatial = self._video.spatial
        layout = Layout(
            self._partition, (generation.height // spatial, generation.width // spatial)
        )
        negative = None
        if parameters.guidance_scale > 1.0:
            negative = self._prompts.encode(generation.negative_prompt or "")
        first = None
        if generation.image is not None:
            pixels = picture(generation.image)[None]
            first = self._pipeline.encode_video(pixels, generation.height, generation.width)
            first = first.to(self._transformer.dtype)
        return FarState(
            layout=layout,
            parameters=parameters,
            scheduler=self._scheduler(parameters),
            noise=self._noise(layout, generation.seed),
            context=Context.empty(self._transformer, layout, batch=1 if negative is None else 2),
            features=FeatureCache(),
            negative=negative,
            picture=first,
        )

    def next_chunk(
        self, state: FarState, prompt: PromptEmbeddings, should_stop: ShouldStop
    ) -> torch.Tensor | None:
        """Return the latents of the next chunk, [1, C, T, h, w]; None when stopped.

        Raises ValueError after the last chunk.
        """
        context = state.context
        if context is None:
            raise RuntimeError("the generation is closed")
        chunk = state.chunks
        if chunk == len(state.layout.partition):
            # WEIR-358
            raise ValueError(f"the video has its {self._capabilities.max_num_frames} frames")
        if context.cached < chunk:
            if should_stop():
                return None
            self._remember(state, context)
        prompts = both(prompt, state.negative)
        if chunk == 0 and state.picture is not None:
            latents = state.picture
        else:
            denoised = self._denoise(state, context, prompts, should_stop)
            if denoised is None:
                return None
            latents = denoised
        # WEIR-357: nothing that a later chunk depends on was changed before this line.
        start = state.layout.latents_before(chunk)
        context.latents[:, start : start + latents.shape[1]] = latents
        context.prompts = prompts
        state.chunks += 1
        return latents.transpose(1, 2)

    def decode(self, state: FarState, latents: torch.Tensor) -> Frames:
        """Return the frames of a chunk, which go on from those decoded before."""
        frames: Frames = self._video.decode(latents, state.features)
        return frames

    def close(self, state: FarState) -> None:
        """Let go of every tensor."""
        state.noise = None
        state.context = None
        state.negative = None
        state.picture = None
        state.scheduler = None
        state.features.clear()

    def _scheduler(self, parameters: FarParameters) -> Any:
        shared = self._pipeline.scheduler
        if parameters.flow_shift is None:
            return type(shared).from_config(shared.config)
        return type(shared).from_config(shared.config, shift=parameters.flow_shift)

    def _noise(self, layout: Layout, seed: int) -> torch.Tensor:
        """Return the noise of the whole video: it is drawn at once, as one long call does."""
        device = self._transformer.device
        noise = randn_tensor(
            (1, self._transformer.config.in_channels, sum(layout.partition), *layout.size),
            generator=torch.Generator(device).manual_seed(seed % 2**64),
            device=device,
            dtype=torch.float32,
        )
        turned: torch.Tensor = noise.to(self._transformer.dtype).transpose(1, 2)
        return turned

    def _denoise(
        self, state: FarState, context: Context, prompts: torch.Tensor, should_stop: ShouldStop
    ) -> torch.Tensor | None:
        assert state.noise is not None  # there is a context, so the generation is open
        chunk, scheduler = state.chunks, state.scheduler
        start = state.layout.latents_before(chunk)
        latents = state.noise[:, start : start + state.layout.partition[chunk]]
        scheduler.set_timesteps(state.parameters.steps, device=latents.device)
        for index, timestep in enumerate(scheduler.timesteps):
            # WEIR-357
            if should_stop():
                return None
            target = scheduler.sigmas[index + 1] * scheduler.config.num_train_timesteps
            if timestep == target:
                continue
            inputs = latents.expand(len(prompts), *latents.shape[1:])
            flow, _ = self._transformer(
                hidden_states=inputs,
                timestep=timestep.expand(inputs.shape[:2]),
                r_timestep=target.expand(inputs.shape[:2]),
                encoder_hidden_states=prompts,
                return_dict=False,
                chunk_partition=list(state.layout.partition[: chunk + 1]),
                kv_cache=context.memory,
                kv_cache_flag=context.flag(writing=False),
            )
            if state.negative is not None:
                unwanted, wanted = flow.chunk(2)
                flow = unwanted + state.parameters.guidance_scale * (wanted - unwanted)
            latents = scheduler.step(flow, timestep, latents, return_dict=False)[0]
        return latents

    def _remember(self, state: FarState, context: Context) -> None:
        """Write keys and values of all chunks so far, with the prompt of the last one.

        This waits until the next chunk is asked for, so that no frame waits for it. Doing it twice
        does no harm: it only depends on chunks that were returned.
        """
        assert context.prompts is not None  # a chunk was returned
        partition = list(state.layout.partition[: state.chunks])
        done = context.latents[:, : sum(partition)]
        inputs = done.expand(len(context.prompts), *done.shape[1:])
        zero = torch.zeros(inputs.shape[:2], dtype=torch.int64, device=inputs.device)
        height, width = state.layout.size
        mask = self._transformer.build_attention_mask(
            chunk_partition=partition,
            height=height,
            width=width,
            device=inputs.device,
            mode="cache",
        )
        self._transformer(
            hidden_states=inputs,
            chunk_partition=partition,
            timestep=zero,
            r_timestep=zero,
            encoder_hidden_states=context.prompts,
            attention_mask=mask,
            return_dict=False,
            kv_cache=context.memory,
            kv_cache_flag=context.flag(writing=True),
        )
        context.cached = state.chunks

    def _declare(self, options: DiffusionOptions, name: str) -> VideoCapabilities:
        config = self._transformer.config
        first, *rest = self._partition
        # The contract knows a first chunk and one size for the others, of which the last is cut.
        if first != 1 or not rest or any(size != rest[0] for size in rest[:-1]):
            raise ValueError(f"chunks of {self._partition} latents are not one, then equal ones")
        if rest[-1] > rest[0]:
            raise ValueError(f"the last chunk of {self._partition} latents is the longest")
        frames = self._video.frames_of(sum(self._partition))
        patches = (*config.patch_size[1:], *config.compressed_patch_size[1:])
        return VideoCapabilities(
            model=name,
            frames_per_second=FRAMES_PER_SECOND,
            default_num_frames=options.num_frames or frames,
            max_num_frames=frames,
            first_chunk_frames=self._video.frames_of(first),
            chunk_frames=rest[0] * self._video.temporal,
            size_multiple=self._video.spatial * math.lcm(*patches),
            default_width=options.width or DEFAULT_WIDTH,
            default_height=options.height or DEFAULT_HEIGHT,
            image_reference=True,
            options=OPTIONS,
        )
