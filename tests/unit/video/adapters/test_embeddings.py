"""Prompts: one shape for all, refused when too long, mixed along a line or an arc."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.video.adapters.helios.adapter import HeliosAdapter
from tests.conformance.video_adapters import tiny
from tests.unit.video.adapters.driving import PROMPT, loaded

pytestmark = tiny.LIBRARY_WARNINGS

WIDTH = 32


@pytest.fixture(scope="module")
def adapter(helios_folder: Path) -> Iterator[HeliosAdapter]:
    """The adapter with a distilled checkpoint."""
    made = loaded(HeliosAdapter, helios_folder)
    yield made
    made.unload()


def test_every_prompt_has_one_shape(adapter: HeliosAdapter) -> None:
    """WEIR-353: so any two can be mixed; white space around and between words does not count."""
    import torch

    shapes = {tuple(adapter.encode_prompt(text).tensor.shape) for text in ("a", PROMPT, "", "雪")}
    assert shapes == {(1, tiny.PROMPT_LENGTH, WIDTH)}
    wide = adapter.encode_prompt("  red \n\n sky" + " " * 100)
    assert torch.equal(wide.tensor, adapter.encode_prompt("red sky").tensor)


def test_a_prompt_that_is_too_long_is_refused(adapter: HeliosAdapter, helios_folder: Path) -> None:
    """WEIR-353: with both counts; cut only where the operator wants that."""
    longest = "a" * (tiny.PROMPT_LENGTH - 2)  # a token begins and one ends it
    adapter.encode_prompt(longest)
    with pytest.raises(ValueError, match="33 tokens; the model reads 32"):
        adapter.encode_prompt(longest + "a")
    cutting = loaded(HeliosAdapter, helios_folder, truncate_prompts="true")
    assert cutting.encode_prompt("a" * 400).tensor.shape == (1, tiny.PROMPT_LENGTH, WIDTH)


def test_text_that_is_not_unicode_is_refused(adapter: HeliosAdapter) -> None:
    """WEIR-353: half a surrogate pair is no text, and is not repeated in the error."""
    with pytest.raises(ValueError, match=r"^the prompt is not valid Unicode text$"):
        adapter.encode_prompt("a \ud800 b")


def test_prompts_can_be_encoded_at_once(adapter: HeliosAdapter) -> None:
    """WEIR-353: a prompt and a negative one come from different threads."""
    import torch

    texts = [f"prompt {index}" + "x" * index for index in range(16)] * 4
    expected = [adapter.encode_prompt(text).tensor for text in texts]
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(adapter.encode_prompt, texts))
    assert all(torch.equal(a, b.tensor) for a, b in zip(expected, made, strict=True))


def test_a_spherical_blend_keeps_lengths_and_halves_the_angle(helios_folder: Path) -> None:
    """WEIR-353: between vectors of one length it stays at that length, where a line is shorter."""
    import torch

    from services.video.adapters.diffusion.embeddings import PromptEmbeddings

    adapter = loaded(HeliosAdapter, helios_folder, blend="spherical")
    rows = {
        "a right angle": ([2.0, 0, 0], [0, 2.0, 0], 0.5, [2**0.5, 2**0.5, 0]),
        "a third of it": ([2.0, 0, 0], [0, 2.0, 0], 1 / 3, [3**0.5, 1.0, 0]),
        "other lengths": ([1.0, 0, 0], [0, 3.0, 0], 0.5, [2**0.5, 2**0.5, 0]),
        "parallel": ([1.0, 0, 0], [3.0, 0, 0], 0.5, [2.0, 0, 0]),
        "opposed": ([1.0, 0, 0], [-1.0, 0, 0], 0.25, [0.5, 0, 0]),
        "padding": ([0.0, 0, 0], [0, 2.0, 0], 0.5, [0, 1.0, 0]),
        "nothing": ([0.0, 0, 0], [0.0, 0, 0], 0.5, [0.0, 0, 0]),
    }
    for name, (source, target, progress, expected) in rows.items():
        one, other = (PromptEmbeddings(torch.tensor([[row]])) for row in (source, target))
        made = adapter.blend(one, other, progress).tensor[0, 0]
        torch.testing.assert_close(made, torch.tensor(expected), msg=name, atol=1e-6, rtol=1e-6)


def test_both_kinds_of_blend_differ_and_begin_and_end_alike(helios_folder: Path) -> None:
    """WEIR-353: the option is in force, with real embeddings."""
    import torch

    linear, spherical = (
        loaded(HeliosAdapter, helios_folder, blend=kind) for kind in ("linear", "spherical")
    )
    one, other = (linear.encode_prompt(text) for text in ("red sky", "BLUE ICE 42"))
    line, arc = (made.blend(one, other, 0.5).tensor for made in (linear, spherical))
    assert torch.equal(line, torch.lerp(one.tensor, other.tensor, 0.5))
    assert not torch.allclose(line, arc)
    assert torch.isfinite(arc).all()
    for progress, end in ((1e-6, one), (1 - 1e-6, other)):
        near = spherical.blend(one, other, progress).tensor
        torch.testing.assert_close(near, end.tensor, atol=1e-4, rtol=1e-4)
