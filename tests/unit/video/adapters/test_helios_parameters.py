"""What a request can ask of Helios; no model is needed for it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from services.video.adapters.helios.parameters import (
    HeliosParameters,
    HeliosTraits,
    read_parameters,
    spread,
)
from tests.unit.video.adapters.driving import asked

DISTILLED = HeliosTraits(stages=3, distilled=True)
GUIDED = HeliosTraits(stages=3, distilled=False)
STEPS = "pyramid_num_inference_steps_list"


@pytest.mark.parametrize(
    ("traits", "changes", "default_steps", "expected"),
    [
        (DISTILLED, {}, None, HeliosParameters((2, 2, 2), True, 1.0)),
        (DISTILLED, {}, 4, HeliosParameters((2, 1, 1), True, 1.0)),
        (
            DISTILLED,
            {"options": {"num_inference_steps": 8}},
            4,
            HeliosParameters((3, 3, 2), True, 1.0),
        ),
        (
            DISTILLED,
            {"options": {"num_inference_steps": 50}, "extra_params": {STEPS: (1, 2, 3)}},
            4,
            HeliosParameters((1, 2, 3), True, 1.0),
        ),
        (
            DISTILLED,
            {"extra_params": {"is_amplify_first_chunk": False, "image_noise_sigma_min": 0}},
            None,
            HeliosParameters((2, 2, 2), False, 1.0, noise_min=0.0),
        ),
        (GUIDED, {}, None, HeliosParameters((20, 20, 20), False, 5.0)),
        (
            GUIDED,
            {"options": {"guidance_scale": 0}},
            3,
            HeliosParameters((1, 1, 1), False, 0.0),
        ),
    ],
)
def test_the_request_wins_over_the_operator_and_he_over_the_model(
    traits: HeliosTraits,
    changes: dict[str, Any],
    default_steps: int | None,
    expected: HeliosParameters,
) -> None:
    """WEIR-354: a list of steps is more exact than a total, a total than a default."""
    assert read_parameters(asked(**changes), traits, default_steps) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (STEPS, [2, 2]),
        (STEPS, "222"),
        (STEPS, [2, 2, 2.5]),
        (STEPS, [2, 2, -1]),
        (STEPS, {"0": 2, "1": 2, "2": 2}),
        ("is_enable_stage2", False),
        ("is_enable_stage2", "true"),
        ("pyramid_num_stages", 4),
        ("pyramid_num_stages", True),
        ("is_amplify_first_chunk", None),
        ("image_noise_sigma_max", float("nan")),
        ("image_noise_sigma_min", -0.1),
        ("image_noise_sigma_min", 0.9),
    ],
)
def test_a_wrong_value_is_refused_by_the_parameter_s_name(name: str, value: object) -> None:
    """WEIR-354: never passed on, never rounded."""
    with pytest.raises(ValueError, match=re.escape(name)):
        read_parameters(asked(extra_params={name: value}), DISTILLED, None)


def test_every_stage_has_a_step() -> None:
    """WEIR-354: the coarse stages, which decide most, get what is left over."""
    assert [spread(total, 3) for total in (3, 4, 5, 6)] == [
        (1, 1, 1),
        (2, 1, 1),
        (2, 2, 1),
        (2, 2, 2),
    ]
    with pytest.raises(ValueError, match="at least 3"):
        spread(2, 3)
