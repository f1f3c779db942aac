"""Helios chunk by chunk, against the pipeline of diffusers that makes a video in one call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.video.adapters.base import Generation
from services.video.adapters.helios.adapter import HeliosAdapter
from tests.conformance.video_adapters import tiny
from tests.conformance.video_adapters.torch_threads import one_torch_thread
from tests.unit.video.adapters.driving import (
    PROMPT,
    SEED,
    Stops,
    asked,
    chunks,
    eight_bits,
    gradient,
    loaded,
)

pytestmark = tiny.LIBRARY_WARNINGS

FRAMES = 33
STEPS = "pyramid_num_inference_steps_list"
CLIENT = {
    "is_enable_stage2": True,
    "pyramid_num_stages": 3.0,
    STEPS: [2.0, 2.0, 2.0],
    "is_amplify_first_chunk": True,
}
"""What existing clients send, with numbers as JSON and protobuf may make them."""


@dataclass(frozen=True, slots=True)
class Same:
    """A request, and the same one to the pipeline."""

    name: str
    generation: Generation
    pipeline: dict[str, Any]
    variant: tiny.TinyHelios = tiny.TinyHelios()  # noqa: RUF009 - frozen
    chunks: int = 2
    stops: tuple[int, ...] = ()
    frames: bool = False

    def one_call(self, folder: Path, output: str) -> Any:
        """What the pipeline makes of it, alone."""
        import diffusers
        import torch

        pipeline = diffusers.HeliosPyramidPipeline.from_pretrained(folder, dtype=torch.float32)
        pipeline.set_progress_bar_config(disable=True)
        given = {
            "guidance_scale": 1.0,
            "pyramid_num_inference_steps_list": [2, 2, 2],
            "is_amplify_first_chunk": self.variant.distilled,
            **self.pipeline,
        }
        return pipeline(
            prompt=PROMPT,
            height=self.generation.height,
            width=self.generation.width,
            num_frames=self.chunks * FRAMES,
            generator=torch.Generator().manual_seed(SEED),
            max_sequence_length=tiny.PROMPT_LENGTH,
            output_type=output,
            **given,
        ).frames


GUIDED = asked(options={"num_inference_steps": 9, "guidance_scale": 4.0}, negative_prompt="blurred")
GUIDED_CALL = {"guidance_scale": 4.0, "negative_prompt": "blurred", STEPS: [3, 3, 3]}

CASES = (
    Same("distilled", asked(), {}, chunks=3, frames=True),
    Same("a client's parameters", asked(extra_params=CLIENT), {}, chunks=1),
    Same("stopped again and again", asked(), {}, stops=(1, 3, 15, 16, 20)),
    Same("wider than high", asked(width=128), {}, chunks=1, frames=True),
    Same("from a picture", asked(image=gradient()), {"image": gradient() / np.float32(255)}),
    Same(
        "not amplified",
        asked(extra_params={"is_amplify_first_chunk": False, STEPS: [3, 1, 2]}),
        {"is_amplify_first_chunk": False, STEPS: [3, 1, 2]},
    ),
    Same("guided", GUIDED, GUIDED_CALL, tiny.TinyHelios(distilled=False)),
    Same(
        "guided, zero star",
        replace(GUIDED, width=128, height=128),  # the pipeline itself cannot do it at 64
        GUIDED_CALL,
        tiny.TinyHelios(distilled=False, zero_star=True),
        chunks=1,
        stops=(2, 9),
    ),
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices are not worth two threads."""
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def adapter(helios_folder: Path) -> Iterator[HeliosAdapter]:
    """The adapter with a distilled checkpoint."""
    made = loaded(HeliosAdapter, helios_folder)
    yield made
    made.unload()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_chunk_by_chunk_equals_one_long_call(
    case: Same, helios_folder: Path, tmp_path: Path
) -> None:
    """WEIR-351: bit by bit, however often it was stopped, in latents and in frames."""
    folder = helios_folder
    if case.variant != tiny.TinyHelios():
        folder = tiny.save_helios(tmp_path, case.variant)
    adapter = loaded(HeliosAdapter, folder)
    made = chunks(adapter, case.generation, case.chunks, Stops(case.stops))
    latents = np.concatenate([part.numpy() for part in made.latents], axis=2)
    expected = case.one_call(folder, "latent").numpy()
    np.testing.assert_array_equal(latents, expected[:, :, -latents.shape[2] :])
    if case.frames:  # `test_latents` holds the decoder to its pipeline besides
        frames = eight_bits(case.one_call(folder, "np")[0])
        np.testing.assert_array_equal(np.concatenate(made.frames)[: len(frames)], frames)


def test_it_stops_before_the_next_step(adapter: HeliosAdapter) -> None:
    """WEIR-357: once it is told to stop, the transformer is not called again."""
    import torch

    calls = []
    transformer: Any = _pipeline(adapter).transformer
    hook = transformer.register_forward_hook(lambda *_: calls.append(1))
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(), prompt)
    before = state.generator.get_state()
    for stop_at in (1, 5, 12):
        calls.clear()
        assert adapter.next_chunk(state, prompt, Stops((stop_at,))) is None
        assert len(calls) == stop_at - 1
    hook.remove()
    assert state.chunks == 0
    assert torch.equal(state.generator.get_state(), before)


def test_a_chunk_that_fails_leaves_the_state_as_it_was(adapter: HeliosAdapter) -> None:
    """WEIR-357: the same chunk can be tried again, and is the same."""

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    expected = chunks(adapter, asked(), 2, Stops())
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(), prompt)
    for latents in expected.latents:
        hook = _pipeline(adapter).transformer.blocks[1].register_forward_hook(fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            adapter.next_chunk(state, prompt, Stops())
        hook.remove()
        again = adapter.next_chunk(state, prompt, Stops())
        assert again is not None
        np.testing.assert_array_equal(again.numpy(), latents.numpy())


def test_a_closed_generation_makes_no_chunk(adapter: HeliosAdapter) -> None:
    """WEIR-352: what was freed is not used."""
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(), prompt)
    adapter.close(state)
    with pytest.raises(RuntimeError, match="closed"):
        adapter.next_chunk(state, prompt, Stops())


def test_the_size_is_a_multiple_of_what_the_pyramid_halves(adapter: HeliosAdapter) -> None:
    """WEIR-354: 64 for three stages; another size is refused with the nearest."""
    assert adapter.capabilities.size_multiple == 64
    prompt = adapter.encode_prompt(PROMPT)
    for width, height in ((96, 64), (64, 100), (0, 64)):
        with pytest.raises(ValueError, match="multiples of 64; the nearest size is"):
            adapter.start(asked(width=width, height=height), prompt)


def test_guidance_is_declared_only_where_it_applies(helios_folder: Path, tmp_path: Path) -> None:
    """WEIR-354: a distilled checkpoint has it inside, and does not take a negative prompt."""
    distilled = loaded(HeliosAdapter, helios_folder)
    assert distilled.capabilities.options == {"num_inference_steps"}
    prompt = distilled.encode_prompt(PROMPT)
    with pytest.raises(ValueError, match="negative_prompt"):
        distilled.start(asked(negative_prompt="blurred"), prompt)
    guided = loaded(HeliosAdapter, tiny.save_helios(tmp_path, tiny.TinyHelios(distilled=False)))
    assert guided.capabilities.options == {
        "num_inference_steps",
        "guidance_scale",
        "negative_prompt",
    }
    made = [
        chunks(guided, asked(options=options, negative_prompt=negative), 1, Stops()).frames[0]
        for options, negative in (
            ({"num_inference_steps": 3, "guidance_scale": 1.0}, "blurred"),
            ({"num_inference_steps": 3, "guidance_scale": 6.0}, "blurred"),
            ({"num_inference_steps": 3, "guidance_scale": 6.0}, "sharp 77"),
        )
    ]
    assert not np.array_equal(made[0], made[1])
    assert not np.array_equal(made[1], made[2])


def _pipeline(adapter: HeliosAdapter) -> Any:
    loaded_parts: Any = adapter._loaded
    return loaded_parts.model._pipeline
