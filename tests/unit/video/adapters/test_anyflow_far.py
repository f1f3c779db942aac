"""AnyFlow-FAR chunk by chunk, against the pipeline of diffusers that makes a video in one call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.video.adapters.anyflow_far.adapter import AnyFlowFarAdapter
from services.video.adapters.base import Generation, ModelUnavailableError
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

PARTITION = tiny.TinyFar().partition
FRAMES = 4 * (sum(PARTITION) - 1) + 1
GUIDED = {"num_inference_steps": 2, "guidance_scale": 3.0}


@dataclass(frozen=True, slots=True)
class Same:
    """A request, and the same one to the pipeline."""

    name: str
    generation: Generation
    pipeline: dict[str, Any] = field(default_factory=dict)
    shift: float | None = None
    stops: tuple[int, ...] = ()
    frames: bool = False

    def one_call(self, folder: Path, output: str, num_frames: int = FRAMES) -> Any:
        """What the pipeline makes of it, alone."""
        import diffusers
        import torch

        pipeline = diffusers.AnyFlowFARPipeline.from_pretrained(folder, dtype=torch.float32)
        if self.shift is not None:
            pipeline.scheduler = diffusers.FlowMapEulerDiscreteScheduler(shift=self.shift)
        pipeline.set_progress_bar_config(disable=True)
        given = dict(self.pipeline)
        if self.generation.image is not None:
            pixels = torch.from_numpy(self.generation.image / np.float32(255))
            given["video"] = pixels.permute(2, 0, 1)[None, None]
        return pipeline(
            prompt=PROMPT,
            height=self.generation.height,
            width=self.generation.width,
            num_frames=num_frames,
            generator=torch.Generator().manual_seed(SEED),
            max_sequence_length=tiny.PROMPT_LENGTH,
            output_type=output,
            **given,
        ).frames


CASES = (
    Same("plain", asked(), {"num_inference_steps": 4}, frames=True),
    Same(
        "stopped again and again",
        asked(options={"num_inference_steps": 2}),
        {"num_inference_steps": 2},
        stops=(1, 4, 5, 6, 8, 13),
    ),
    Same(
        "wider than high",
        asked(width=96, options={"num_inference_steps": 1}),
        {"num_inference_steps": 1},
    ),
    Same(
        "from a picture",
        asked(image=gradient(), options={"num_inference_steps": 2}),
        {"num_inference_steps": 2},
        stops=(2, 3),
        frames=True,
    ),
    Same(
        "guided",
        asked(options=GUIDED, negative_prompt="blurred"),
        {**GUIDED, "negative_prompt": "blurred"},
    ),
    Same(
        "another shift",
        asked(options={"num_inference_steps": 2, "flow_shift": 2.0}),
        {"num_inference_steps": 2},
        shift=2.0,
    ),
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices are not worth two threads."""
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def adapter(far_folder: Path) -> Iterator[AnyFlowFarAdapter]:
    """The adapter with a checkpoint of five chunks."""
    made = loaded(AnyFlowFarAdapter, far_folder)
    yield made
    made.unload()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_chunk_by_chunk_equals_one_long_call(
    case: Same, adapter: AnyFlowFarAdapter, far_folder: Path
) -> None:
    """WEIR-351: bit by bit, however often it was stopped, in latents and in frames."""
    made = chunks(adapter, case.generation, len(PARTITION), Stops(case.stops))
    assert [len(frames) for frames in made.frames] == [1, 8, 8, 8, 4]
    latents = np.concatenate([part.numpy() for part in made.latents], axis=2)
    np.testing.assert_array_equal(latents, case.one_call(far_folder, "latent").numpy())
    if case.frames:  # `test_latents` holds the decoder to its pipeline besides
        frames = eight_bits(case.one_call(far_folder, "np")[0])
        np.testing.assert_array_equal(np.concatenate(made.frames), frames)


@pytest.mark.slow
def test_the_published_chunks_make_81_frames(tmp_path: Path) -> None:
    """WEIR-351: with the chunks that the published checkpoints have, bit by bit."""
    reason = tiny.lacking()
    if reason is not None:
        pytest.skip(reason)
    partition = (1, 3, 3, 3, 3, 3, 3, 2)
    folder = tiny.save_anyflow_far(tmp_path, tiny.TinyFar(partition))
    adapter = loaded(AnyFlowFarAdapter, folder)
    capabilities = adapter.capabilities
    assert list(capabilities.chunk_sizes(81)) == [1, 12, 12, 12, 12, 12, 12, 8]
    assert (capabilities.max_num_frames, capabilities.default_num_frames) == (81, 81)
    case = Same("published", asked(options={"num_inference_steps": 2}), {"num_inference_steps": 2})
    made = chunks(adapter, case.generation, len(partition), Stops())
    frames = eight_bits(case.one_call(folder, "np", 81)[0])
    np.testing.assert_array_equal(np.concatenate(made.frames), frames)


def test_a_failure_while_it_remembers_can_be_repeated(adapter: AnyFlowFarAdapter) -> None:
    """WEIR-357: half a memory is written over, and the chunk is the same."""

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    expected = chunks(adapter, asked(), 3, Stops())
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(), prompt)
    for latents in expected.latents:
        hook = _transformer(adapter).blocks[1].register_forward_hook(fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            adapter.next_chunk(state, prompt, Stops())
        hook.remove()
        again = adapter.next_chunk(state, prompt, Stops())
        assert again is not None
        np.testing.assert_array_equal(again.numpy(), latents.numpy())


def test_it_stops_before_the_next_step(adapter: AnyFlowFarAdapter) -> None:
    """WEIR-357: once it is told to stop, the transformer is not called again."""
    calls = []
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(), prompt)
    assert adapter.next_chunk(state, prompt, Stops()) is not None
    hook = _transformer(adapter).register_forward_hook(lambda *_: calls.append(1))
    # Remembering the chunk before is a step of its own, which is done once.
    for stop_at, expected in ((1, 0), (2, 1), (1, 0), (3, 2), (4, 3)):
        calls.clear()
        assert adapter.next_chunk(state, prompt, Stops((stop_at,))) is None
        assert len(calls) == expected
    hook.remove()
    assert state.chunks == 1


def test_no_frame_waits_for_the_memory(adapter: AnyFlowFarAdapter) -> None:
    """WEIR-357: a chunk is returned before it is remembered, so the first comes sooner."""
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(options={"num_inference_steps": 1}), prompt)
    calls = []
    hook = _transformer(adapter).register_forward_hook(lambda *_: calls.append(1))
    assert adapter.next_chunk(state, prompt, Stops()) is not None
    assert len(calls) == 1
    assert adapter.next_chunk(state, prompt, Stops()) is not None
    assert len(calls) == 3
    hook.remove()


@pytest.mark.parametrize("partition", [(2, 2), (1,), (1, 2, 3, 2), (1, 2, 3)], ids=str)
def test_chunks_that_cannot_be_declared_are_refused(
    partition: tuple[int, ...], tmp_path: Path
) -> None:
    """WEIR-355: the contract knows a first chunk and one size for all others."""
    reason = tiny.lacking()
    if reason is not None:
        pytest.skip(reason)
    folder = tiny.save_anyflow_far(tmp_path, tiny.TinyFar(partition))
    with pytest.raises(ModelUnavailableError, match=r"chunk"):
        loaded(AnyFlowFarAdapter, folder)


def _transformer(adapter: AnyFlowFarAdapter) -> Any:
    loaded_parts: Any = adapter._loaded
    return loaded_parts.model._transformer
