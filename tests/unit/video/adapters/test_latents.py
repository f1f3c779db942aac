"""Decoding piece by piece, against the autoencoder that decodes at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.conformance.video_adapters import tiny
from tests.conformance.video_adapters.torch_threads import one_torch_thread
from tests.unit.video.adapters.driving import eight_bits

LATENTS = 8
PLAIN: dict[str, Any] = {}
PATCHED: dict[str, Any] = {
    "is_residual": True,
    "patch_size": 2,
    "in_channels": 12,
    "out_channels": 12,
    "decoder_base_dim": 3,
    "scale_factor_spatial": 16,
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices are not worth two threads."""
    reason = tiny.lacking()
    if reason is not None:
        pytest.skip(reason)
    with one_torch_thread():
        yield


@pytest.fixture(params=[PLAIN, PATCHED], ids=["Wan 2.1", "Wan 2.2"])
def vae(request: pytest.FixtureRequest) -> Any:
    """An autoencoder of either generation, with random weights."""
    import diffusers
    import torch

    torch.manual_seed(0)
    return diffusers.AutoencoderKLWan(
        base_dim=3,
        z_dim=16,
        dim_mult=[1, 1, 1, 1],
        num_res_blocks=1,
        temperal_downsample=[False, True, True],
        **request.param,
    ).eval()


def at_once(vae: Any, latents: Any) -> Any:
    """The frames, as a pipeline makes them of the whole."""
    import torch
    from diffusers.video_processor import VideoProcessor

    shape = (1, 16, 1, 1, 1)
    mean = torch.tensor(vae.config.latents_mean).view(shape)
    scale = 1.0 / torch.tensor(vae.config.latents_std).view(shape)
    with torch.inference_mode():
        pixels = vae.decode(latents / scale + mean, return_dict=False)[0]
    return eight_bits(VideoProcessor().postprocess_video(pixels)[0])


def test_pieces_of_any_length_are_what_the_whole_is(vae: Any) -> None:
    """WEIR-352: the first latent is one frame, each other four; no seam between pieces."""
    import torch

    from services.video.adapters.diffusion.latents import FeatureCache, WanVideo

    video = WanVideo(vae)
    latents = torch.randn(1, 16, LATENTS, 4, 6)
    whole = at_once(vae, latents)
    for pieces in ((LATENTS,), (1, 3, 3, 1), (3, 2, 3), (1,) * LATENTS):
        cache = FeatureCache()
        parts = [video.decode(part, cache) for part in torch.split(latents, list(pieces), dim=2)]
        expected = [4 * count for count in pieces]
        expected[0] -= 3
        assert [len(part) for part in parts] == expected
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert video.frames_of(LATENTS) == len(whole)


def test_two_videos_can_be_decoded_in_turns(vae: Any) -> None:
    """WEIR-352: also while the autoencoder encodes a picture, which empties its own memory."""
    import torch

    from services.video.adapters.diffusion.latents import FeatureCache, WanVideo

    video = WanVideo(vae)
    videos = [torch.randn(1, 16, 4, 4, 4) for _ in range(2)]
    caches = [FeatureCache(), FeatureCache()]
    made: list[list[Any]] = [[], []]
    side = 4 * video.spatial
    for step in range(4):
        for index in (0, 1):
            made[index].append(video.decode(videos[index][:, :, step : step + 1], caches[index]))
            with torch.inference_mode():
                vae.encode(torch.zeros(1, 3, 1, side, side))
    for parts, latents in zip(made, videos, strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), at_once(vae, latents))
