"""One chunk of Helios out of noise: stage by stage from coarse to fine.

Owns: the denoising loop and its arithmetic. Does not own: what came before the chunk (`history`)
and what becomes of it (`model`). Enforces: WEIR-351 (a chunk is what one long call of the pipeline
makes of it, bit by bit), WEIR-357 (it asks before every step whether to go on). Imports torch and
diffusers: import it inside `load` only.

The steps follow `HeliosPyramidPipeline.__call__`, which cannot be used for this: it decodes in the
same loop, shares one scheduler among all callers, and cannot be interrupted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from diffusers.pipelines.helios.pipeline_helios_pyramid import calculate_shift, optimized_scale
from diffusers.utils.torch_utils import randn_tensor

from services.video.adapters.base import ShouldStop
from services.video.adapters.diffusion.embeddings import PromptEmbeddings
from services.video.adapters.helios.history import History
from services.video.adapters.helios.parameters import HeliosParameters

CHUNK = 9
"""Latents of a chunk."""
_ZERO_STEPS = 2
"""Steps of the first stage that CFG-Zero* leaves out."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkTask:
    """What one chunk is made from. `size` is that of latents, (h, w). The generator moves on."""

    size: tuple[int, int]
    first: bool
    history: History
    prompt: PromptEmbeddings
    negative: PromptEmbeddings | None
    parameters: HeliosParameters
    scheduler: Any
    generator: torch.Generator


class Pyramid:
    """The transformer of a pipeline at work. Holds no state of any generation."""

    def __init__(self, pipeline: Any, distilled: bool) -> None:
        self._pipeline = pipeline
        self._transformer = pipeline.transformer
        self._dtype: torch.dtype = pipeline.transformer.dtype
        self._device: torch.device = pipeline.transformer.device
        self._distilled = distilled
        self._zero_star: bool = pipeline.config.is_cfg_zero_star

    def denoise(self, task: ChunkTask, should_stop: ShouldStop) -> torch.Tensor | None:
        """Return the latents of a chunk, [1, C, 9, h, w]; None when stopped."""
        steps = task.parameters.steps
        context = task.history.context(self._dtype, CHUNK)
        latents = self._coarse_noise(task, halvings=len(steps) - 1)
        for stage, count in enumerate(steps):
            self._schedule(task, latents, stage, count)
            if stage:
                latents = self._refine(task, latents, stage)
            origin = latents
            for index, timestep in enumerate(task.scheduler.timesteps):
                # WEIR-357
                if should_stop():
                    return None
                flow = self._flow(task, latents, timestep, context, skip=_skips(stage, index))
                latents = task.scheduler.step(
                    flow,
                    timestep,
                    latents,
                    generator=task.generator,
                    return_dict=False,
                    **self._distilled_arguments(task, origin, index),
                )[0]
        return latents

    def _coarse_noise(self, task: ChunkTask, halvings: int) -> torch.Tensor:
        noise: torch.Tensor = randn_tensor(
            (1, self._transformer.config.in_channels, CHUNK, *task.size),
            generator=task.generator,
            device=self._device,
            dtype=torch.float32,
        )
        for _ in range(halvings):
            height, width = noise.shape[-2] // 2, noise.shape[-1] // 2
            # Times two: the mean of four independent values has half their deviation.
            noise = _resize(noise, (height, width), "bilinear") * 2
        return noise

    def _schedule(self, task: ChunkTask, latents: torch.Tensor, stage: int, count: int) -> None:
        """Set the timesteps of a stage, by the number of tokens of the stage before it."""
        config = task.scheduler.config
        tokens = math.prod(latents.shape[-3:]) // math.prod(self._transformer.config.patch_size)
        shift = calculate_shift(
            tokens,
            config.get("base_image_seq_len", 256),
            config.get("max_image_seq_len", 4096),
            config.get("base_shift", 0.5),
            config.get("max_shift", 1.15),
        )
        task.scheduler.set_timesteps(
            count,
            stage,
            device=self._device,
            mu=shift,
            is_amplify_first_chunk=task.first and task.parameters.amplify_first_chunk,
        )

    def _refine(self, task: ChunkTask, latents: torch.Tensor, stage: int) -> torch.Tensor:
        """Double the resolution, and renoise so that no block of four equal values is left."""
        height, width = latents.shape[-2] * 2, latents.shape[-1] * 2
        latents = _resize(latents, (height, width), "nearest")
        signal = 1 - task.scheduler.ori_start_sigmas[stage]
        gamma = task.scheduler.config.gamma
        keep = 1 / (math.sqrt(1 + (1 / gamma)) * (1 - signal) + signal)
        renew = keep * (1 - signal) / math.sqrt(gamma)
        noise = self._pipeline.sample_block_noise(
            *latents.shape, self._transformer.config.patch_size, self._device, task.generator
        )
        refined: torch.Tensor = keep * latents + renew * noise.to(self._dtype)
        return refined

    def _flow(
        self,
        task: ChunkTask,
        latents: torch.Tensor,
        timestep: torch.Tensor,
        context: dict[str, torch.Tensor],
        skip: bool,
    ) -> torch.Tensor:
        inputs = latents.to(self._dtype)
        scale = task.parameters.guidance_scale
        if task.negative is None or scale <= 1.0:
            return self._predict(inputs, timestep, context, task.prompt)
        if self._zero_star and skip:
            return torch.zeros_like(inputs)
        wanted = self._predict(inputs, timestep, context, task.prompt)
        unwanted = self._predict(inputs, timestep, context, task.negative)
        if self._zero_star:
            best = optimized_scale(wanted.reshape(1, -1), unwanted.reshape(1, -1))
            unwanted = unwanted * best.view(1, 1, 1, 1, 1).to(wanted.dtype)
        return unwanted + scale * (wanted - unwanted)

    def _predict(
        self,
        inputs: torch.Tensor,
        timestep: torch.Tensor,
        context: dict[str, torch.Tensor],
        prompt: PromptEmbeddings,
    ) -> torch.Tensor:
        predicted: torch.Tensor = self._transformer(
            hidden_states=inputs,
            timestep=timestep.expand(1).to(torch.int64),
            encoder_hidden_states=prompt.tensor,
            return_dict=False,
            **context,
        )[0]
        return predicted

    def _distilled_arguments(
        self, task: ChunkTask, origin: torch.Tensor, index: int
    ) -> dict[str, Any]:
        """Return what a step of a distilled model needs besides: it renoises from its origin."""
        if not self._distilled:
            return {}
        scheduler = task.scheduler
        return {
            "cur_sampling_step": index,
            "dmd_noisy_tensor": origin,
            "dmd_sigmas": scheduler.sigmas,
            "dmd_timesteps": scheduler.timesteps,
            "all_timesteps": scheduler.timesteps,
        }


def _resize(latents: torch.Tensor, size: tuple[int, int], mode: str) -> torch.Tensor:
    """Return latents [1, C, T, h, w] in another size, each of the T by itself."""
    return F.interpolate(latents[0].transpose(0, 1), size=size, mode=mode).transpose(0, 1)[None]


def _skips(stage: int, index: int) -> bool:
    return stage == 0 and index < _ZERO_STEPS
