"""What a request can ask of Helios, and what is in force.

Owns: names, ranges and defaults of the parameters. Does not own: denoising. Enforces: WEIR-354
(declared parameters are checked by name and type). Importing this needs no model library.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.video.adapters.base import Generation
from services.video.adapters.diffusion.parameters import (
    number,
    truth,
    whole_number,
    whole_numbers,
)

EXTRA_PARAMS = frozenset(
    {
        "is_enable_stage2",
        "pyramid_num_stages",
        "pyramid_num_inference_steps_list",
        "is_amplify_first_chunk",
        "image_noise_sigma_min",
        "image_noise_sigma_max",
    }
)
"""Names as existing clients of Helios write them."""

DISTILLED_STEPS = 2
GUIDED_STEPS = 20
DEFAULT_GUIDANCE = 5.0
MAX_STEPS = 200
MAX_GUIDANCE = 20.0
NOISE_MIN = 0.111
NOISE_MAX = 0.135


@dataclass(frozen=True, slots=True)
class HeliosTraits:
    """What a checkpoint is: the stages of its pyramid, and whether it was distilled."""

    stages: int
    distilled: bool

    @property
    def options(self) -> frozenset[str]:
        """Options of a request that it reads; guidance is inside the weights once distilled."""
        guided = () if self.distilled else ("guidance_scale", "negative_prompt")
        return frozenset({"num_inference_steps", *guided})


@dataclass(frozen=True, slots=True)
class HeliosParameters:
    """What is in force. `steps` are those of each stage, coarsest first.

    `noise_min` and `noise_max` bound the share of noise that is put over a picture.
    """

    steps: tuple[int, ...]
    amplify_first_chunk: bool
    guidance_scale: float
    noise_min: float = NOISE_MIN
    noise_max: float = NOISE_MAX


def read_parameters(
    generation: Generation, traits: HeliosTraits, default_steps: int | None
) -> HeliosParameters:
    """Return what is in force; `default_steps` are the operator's for a whole chunk.

    Raises ValueError naming the parameter that is wrong.
    """
    given = generation.extra_params
    if not truth("is_enable_stage2", given.get("is_enable_stage2", True)):
        raise ValueError("is_enable_stage2 can only be true: this model always goes by stages")
    stages = traits.stages
    whole_number("pyramid_num_stages", given.get("pyramid_num_stages", stages), stages, stages)
    low = number("image_noise_sigma_min", given.get("image_noise_sigma_min", NOISE_MIN), 0, 1)
    high = number("image_noise_sigma_max", given.get("image_noise_sigma_max", NOISE_MAX), 0, 1)
    if low > high:
        raise ValueError("image_noise_sigma_min is at most image_noise_sigma_max")
    amplify = truth("is_amplify_first_chunk", given.get("is_amplify_first_chunk", traits.distilled))
    guidance = 1.0
    if not traits.distilled:
        asked = generation.options.get("guidance_scale", DEFAULT_GUIDANCE)
        guidance = number("guidance_scale", asked, 0, MAX_GUIDANCE)
    return HeliosParameters(
        steps=_steps(generation, traits, default_steps),
        amplify_first_chunk=amplify and traits.distilled,
        guidance_scale=guidance,
        noise_min=low,
        noise_max=high,
    )


def spread(total: int, stages: int) -> tuple[int, ...]:
    """Spread the steps of a chunk over its stages; the coarse ones get what is left over.

    Raises ValueError for fewer steps than stages.
    """
    if total < stages:
        raise ValueError(f"num_inference_steps is at least {stages}: one for each stage")
    each, rest = divmod(total, stages)
    return tuple(each + (stage < rest) for stage in range(stages))


def _steps(
    generation: Generation, traits: HeliosTraits, default_steps: int | None
) -> tuple[int, ...]:
    """Return the steps of each stage: the request's list, its total, the operator's, ours."""
    stages = traits.stages
    name = "pyramid_num_inference_steps_list"
    if name in generation.extra_params:
        return whole_numbers(name, generation.extra_params[name], stages, 1, MAX_STEPS)
    if "num_inference_steps" in generation.options:
        asked = generation.options["num_inference_steps"]
        return spread(whole_number("num_inference_steps", asked, 1, MAX_STEPS), stages)
    if default_steps is not None:
        return spread(default_steps, stages)
    return (DISTILLED_STEPS if traits.distilled else GUIDED_STEPS,) * stages
