"""Which video adapters are held to the suite, and how each is made.

Owns: the list. A new adapter is one entry in `CASES`. Does not own: the checks (`suite`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from services.video.adapters.base import VideoAdapter
from services.video.adapters.registry import resolve_adapter
from services.video.adapters.settings import AdapterSettings
from tests.conformance.video_adapters import tiny

Refused = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Options and extra parameters, of which at least one is wrong."""


@dataclass(frozen=True, slots=True)
class AdapterCase:
    """One adapter: how it is made, what a prompt state is in numbers, what it refuses.

    `refuses_undeclared`: it does not leave that to the engine, which does it too.
    """

    name: str
    make: Callable[[Path], VideoAdapter[Any, Any, Any]]
    vector: Callable[[Any], NDArray[np.float64]]
    lacking: Callable[[], str | None] = lambda: None
    refused: tuple[Refused, ...] = ()
    refuses_undeclared: bool = True

    def skip_unless_possible(self) -> None:
        """Skip the test, with the reason, where the adapter cannot be loaded."""
        reason = self.lacking()
        if reason is not None:
            pytest.skip(reason)


def _embeddings(state: Any) -> NDArray[np.float64]:
    return np.asarray(state.tensor.double().numpy())


def _colour(state: Any) -> NDArray[np.float64]:
    return np.asarray(state, np.float64)


def _without_pattern() -> str | None:
    found = importlib.util.find_spec("services.video.adapters.pattern")
    return None if found else "there is no pattern adapter"


def _pattern(folder: Path) -> VideoAdapter[Any, Any, Any]:
    options = {"width": "64", "height": "64"}
    return resolve_adapter("pattern")(AdapterSettings(folder, "cpu", options))


def _tiny(
    adapter: str, save: Callable[[Path], Path], more: Mapping[str, str], folder: Path
) -> VideoAdapter[Any, Any, Any]:
    options = tiny.tiny_options(save(folder), **more)
    return resolve_adapter(adapter)(AdapterSettings(folder, "cpu", options))


_HELIOS = "services.video.adapters.helios.adapter:HeliosAdapter"
_FAR = "services.video.adapters.anyflow_far.adapter:AnyFlowFarAdapter"
_STEPS = "pyramid_num_inference_steps_list"

_HELIOS_REFUSED: tuple[Refused, ...] = (
    ({"num_inference_steps": 2}, {}),
    ({"num_inference_steps": 201}, {}),
    ({"num_inference_steps": 3.5}, {}),
    ({"num_inference_steps": float("nan")}, {}),
    ({"guidance_scale": 5.0}, {}),
    ({}, {_STEPS: [2, 2]}),
    ({}, {_STEPS: "222"}),
    ({}, {_STEPS: [2, 2, True]}),
    ({}, {_STEPS: [2, 2, 0]}),
    ({}, {_STEPS: 2}),
    ({}, {"is_amplify_first_chunk": 1}),
    ({}, {"is_enable_stage2": False}),
    ({}, {"pyramid_num_stages": 2}),
    ({}, {"image_noise_sigma_min": "0.1"}),
    ({}, {"image_noise_sigma_max": 1.1}),
    ({}, {"image_noise_sigma_min": 0.2, "image_noise_sigma_max": 0.1}),
)
_FAR_REFUSED: tuple[Refused, ...] = (
    ({"num_inference_steps": 0}, {}),
    ({"num_inference_steps": 1.5}, {}),
    ({"guidance_scale": 21.0}, {}),
    ({"flow_shift": 0.0}, {}),
    ({"flow_shift": float("inf")}, {}),
    ({}, {_STEPS: [2, 2, 2]}),
)

CASES = (
    AdapterCase(
        "pattern",
        _pattern,
        _colour,
        _without_pattern,
        refused=(({}, {"inverted": 1}),),
        refuses_undeclared=False,
    ),
    AdapterCase(
        "helios",
        partial(_tiny, _HELIOS, tiny.save_helios, {"steps": "3"}),
        _embeddings,
        tiny.lacking,
        refused=_HELIOS_REFUSED,
    ),
    AdapterCase(
        "anyflow_far",
        partial(_tiny, _FAR, tiny.save_anyflow_far, {"steps": "2"}),
        _embeddings,
        tiny.lacking,
        refused=_FAR_REFUSED,
    ),
)
