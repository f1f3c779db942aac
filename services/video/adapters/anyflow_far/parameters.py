"""What a request can ask of AnyFlow-FAR, and what is in force.

Owns: names, ranges and defaults of the options. Does not own: denoising. Enforces: WEIR-354
(declared options are checked by name and type). Importing this needs no model library.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.video.adapters.base import Generation
from services.video.adapters.diffusion.parameters import number, whole_number

OPTIONS = frozenset({"num_inference_steps", "guidance_scale", "negative_prompt", "flow_shift"})

DEFAULT_STEPS = 4
MAX_STEPS = 200
MAX_GUIDANCE = 20.0
MIN_SHIFT = 0.01
MAX_SHIFT = 100.0


@dataclass(frozen=True, slots=True)
class FarParameters:
    """What is in force; a guidance of 1 is none, a shift of None that of the checkpoint."""

    steps: int
    guidance_scale: float = 1.0
    flow_shift: float | None = None


def read_parameters(generation: Generation, default_steps: int | None) -> FarParameters:
    """Return what is in force. Raises ValueError naming the option that is wrong."""
    given = generation.options
    shift = given.get("flow_shift")
    return FarParameters(
        steps=whole_number(
            "num_inference_steps",
            given.get("num_inference_steps", default_steps or DEFAULT_STEPS),
            1,
            MAX_STEPS,
        ),
        guidance_scale=number("guidance_scale", given.get("guidance_scale", 1.0), 0, MAX_GUIDANCE),
        flow_shift=None if shift is None else number("flow_shift", shift, MIN_SHIFT, MAX_SHIFT),
    )
