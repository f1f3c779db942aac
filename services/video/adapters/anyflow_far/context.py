"""What AnyFlow-FAR remembers of the video so far: its latents, and their keys and values.

Owns: the memory of one generation and how much of it is filled. Does not own: what is put into it
(the transformer writes it). Enforces: WEIR-352 (its size is fixed when it is made). Imports torch:
import it inside `load` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from services.video.adapters.diffusion.embeddings import PromptEmbeddings


@dataclass(frozen=True, slots=True)
class Layout:
    """How a video is cut: latents of each chunk, and their size (h, w)."""

    partition: tuple[int, ...]
    size: tuple[int, int]

    def latents_before(self, chunk: int) -> int:
        """Return how many latents there are before a chunk."""
        return sum(self.partition[:chunk])


@dataclass(slots=True, eq=False)
class Context:
    """The chunks so far. `cached` of them can be attended to; `prompts` made the last one.

    `latents` are [1, T, C, h, w] of the whole video, filled from the left. `memory` has for each
    layer the keys and values of near chunks in full, and of far ones in coarse patches.
    """

    latents: torch.Tensor
    memory: dict[int, dict[str, torch.Tensor]]
    cached: int = 0
    prompts: torch.Tensor | None = None

    @classmethod
    def empty(cls, transformer: Any, layout: Layout, batch: int) -> Context:
        """Return the context of a video that has not begun; batch 2 with guidance, else 1."""
        config = transformer.config
        longest = max(layout.partition)
        far = max(0, len(layout.partition) - config.full_chunk_limit + 1)
        near_tokens = config.full_chunk_limit * longest * _tokens(layout.size, config.patch_size)
        far_tokens = far * longest * _tokens(layout.size, config.compressed_patch_size)
        place = {"device": transformer.device, "dtype": transformer.dtype}

        def keys_and_values(tokens: int) -> torch.Tensor:
            heads, width = config.num_attention_heads, config.attention_head_dim
            return torch.zeros(2, batch, heads, tokens, width, **place)

        memory = {
            layer: {
                "full_cache": keys_and_values(near_tokens),
                "compressed_cache": keys_and_values(far_tokens),
            }
            for layer in range(config.num_layers)
        }
        shape = (1, sum(layout.partition), config.in_channels, *layout.size)
        return cls(torch.zeros(shape, **place), memory)

    def flag(self, writing: bool) -> dict[str, Any]:
        """Return what the transformer is told of the memory; it adds to what it is given."""
        return {"num_cached_chunks": self.cached, "is_cache_step": writing}


def both(prompt: PromptEmbeddings, negative: PromptEmbeddings | None) -> torch.Tensor:
    """Return the prompts of a batch: the unwanted one first where there is one."""
    if negative is None:
        return prompt.tensor
    return torch.cat([negative.tensor, prompt.tensor])


def _tokens(size: tuple[int, int], patch: tuple[int, int, int]) -> int:
    return (size[0] // patch[1]) * (size[1] // patch[2])
