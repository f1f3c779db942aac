"""Latents to frames and pictures to numbers, with the Wan autoencoder.

Owns: decoding latent by latent with a cache that the caller keeps. Does not own: how latents come
about. Enforces: WEIR-352 (decoding piece by piece gives what decoding at once gives, and no two
generations share anything: the autoencoder's own cache, one for all, is never used to decode).
Imports torch and diffusers: import it inside `load` only.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import unpatchify

from services.video.adapters.base import Frames


class FeatureCache(defaultdict[int, Any]):
    """What the causal convolutions remember of the latents decoded so far; empty at the start."""

    def __init__(self) -> None:
        super().__init__(_nothing)


class WanVideo:
    """The autoencoder of a pipeline. Holds no state of any generation; any thread."""

    def __init__(self, vae: Any) -> None:
        self._vae = vae
        config = vae.config
        shape = (1, config.z_dim, 1, 1, 1)
        self._mean = torch.tensor(config.latents_mean).view(shape).to(vae.device, vae.dtype)
        self._std = torch.tensor(config.latents_std).view(shape).to(vae.device, vae.dtype)
        # Multiplied and divided by, as the pipelines do it: the last bit differs otherwise.
        self._scale = 1.0 / self._std
        self.channels: int = config.z_dim
        self.temporal: int = config.scale_factor_temporal
        self.spatial: int = config.scale_factor_spatial

    @property
    def mean(self) -> torch.Tensor:
        """Mean of each channel of raw latents, [1, C, 1, 1, 1]."""
        return self._mean

    @property
    def scale(self) -> torch.Tensor:
        """One by the deviation of each channel of raw latents, [1, C, 1, 1, 1]."""
        return self._scale

    def frames_of(self, latents: int) -> int:
        """Return how many frames `latents` latents from the start of a video are."""
        return (latents - 1) * self.temporal + 1

    def decode(self, latents: torch.Tensor, cache: FeatureCache) -> Frames:
        """Return the frames of normalised latents [1, C, T, h, w], which follow those in `cache`.

        The first latent of an empty cache is one frame, each other `temporal` frames.
        """
        with torch.inference_mode():
            raw = latents.to(self._vae.dtype) / self._scale + self._mean
            hidden = self._vae.post_quant_conv(raw)
            # One latent at a time: the memory of a frame, not of a chunk.
            parts = [
                self._decode_one(hidden[:, :, index : index + 1], cache)
                for index in range(hidden.shape[2])
            ]
        return np.concatenate(parts)

    def _decode_one(self, hidden: torch.Tensor, cache: FeatureCache) -> Frames:
        first = not cache
        patch = self._vae.config.patch_size
        pixels = self._vae.decoder(hidden, feat_cache=cache, feat_idx=[0], first_chunk=first)
        if patch is not None:
            pixels = unpatchify(pixels, patch_size=patch)
        pixels = (pixels[0].clamp(-1, 1) * 0.5 + 0.5).clamp(0, 1) * 255
        frames: Frames = pixels.round().to(torch.uint8).permute(1, 2, 3, 0).cpu().numpy()
        return frames


def picture(image: Frames) -> torch.Tensor:
    """Return a picture [H, W, 3] as [1, 3, H, W], 0 to 1."""
    return torch.from_numpy(image.astype(np.float32) / 255.0).permute(2, 0, 1)[None]


def _nothing() -> None:
    return None
