"""Prompts as embeddings: encoding them and mixing two of them.

Owns: the one encoder of a loaded pipeline and the arithmetic of a blend. Does not own: when prompts
change (`services.video.timeline`). Enforces: WEIR-353 (every prompt has the same shape, so that any
two can be mixed; too long a prompt is refused, not cut in silence). Imports torch: import it inside
`load` only.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch

from services.video.adapters.diffusion.options import DiffusionOptions

_NEARLY_PARALLEL = 1.0 - 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PromptEmbeddings:
    """A prompt state: [1, length, width], in the precision of the transformer; never changed."""

    tensor: torch.Tensor


class PromptEncoder:
    """The text encoder of a pipeline. Any thread."""

    def __init__(self, pipeline: Any, options: DiffusionOptions) -> None:
        self._pipeline = pipeline
        self._length = options.max_sequence_length
        self._truncate = options.truncate_prompts
        self._dtype: torch.dtype = pipeline.transformer.dtype
        # A fast tokenizer keeps its padding in itself and fails when two threads call it.
        self._lock = threading.Lock()

    def encode(self, text: str) -> PromptEmbeddings:
        """Return the embeddings of `text`. Raises ValueError when it is too long or not Unicode."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("the prompt is not valid Unicode text") from error
        with self._lock, torch.inference_mode():
            self._check_length(text)
            tensor, _ = self._pipeline.encode_prompt(
                prompt=text,
                do_classifier_free_guidance=False,
                # WEIR-353: one length for all.
                max_sequence_length=self._length,
            )
        return PromptEmbeddings(tensor.to(self._dtype))

    def _check_length(self, text: str) -> None:
        if self._truncate:
            return
        squeezed = " ".join(text.split())  # as the pipeline itself does first
        tokens = len(self._pipeline.tokenizer(squeezed, verbose=False).input_ids)
        if tokens > self._length:
            raise ValueError(f"the prompt has {tokens} tokens; the model reads {self._length}")


def blend(
    source: PromptEmbeddings, target: PromptEmbeddings, progress: float, kind: str
) -> PromptEmbeddings:
    """Return the embeddings between two; `kind` is linear or spherical."""
    mix = _spherical if kind == "spherical" else _linear
    with torch.inference_mode():
        mixed = mix(source.tensor.float(), target.tensor.float(), progress)
        return PromptEmbeddings(mixed.to(source.tensor.dtype))


def _linear(source: torch.Tensor, target: torch.Tensor, progress: float) -> torch.Tensor:
    return torch.lerp(source, target, progress)


def _spherical(source: torch.Tensor, target: torch.Tensor, progress: float) -> torch.Tensor:
    """Turn each token's vector along the arc, and change its length evenly.

    A token that is zero on one side (padding), or whose two vectors are nearly parallel or opposed,
    has no arc of its own and is mixed linearly.
    """
    source_norm = source.norm(dim=-1, keepdim=True)
    target_norm = target.norm(dim=-1, keepdim=True)
    zero = (source_norm == 0) | (target_norm == 0)
    one = torch.ones_like(source_norm)
    from_unit = source / torch.where(zero, one, source_norm)
    to_unit = target / torch.where(zero, one, target_norm)
    cosine = (from_unit * to_unit).sum(dim=-1, keepdim=True)
    straight = zero | (cosine.abs() >= _NEARLY_PARALLEL)
    angle = torch.acos(torch.where(straight, torch.zeros_like(cosine), cosine))
    turned = (
        torch.sin((1 - progress) * angle) * from_unit + torch.sin(progress * angle) * to_unit
    ) / torch.sin(angle)
    length = torch.lerp(source_norm, target_norm, progress)
    return torch.where(straight, torch.lerp(source, target, progress), turned * length)
