"""Checkpoints with random weights, small enough to run on a CPU in a second, built in code.

Owns: every part of them: tokenizer, text encoder, autoencoder, transformer, scheduler. They are
saved as diffusers saves them, so an adapter reads them the way it reads real ones. Does not own:
the adapters. Importing this imports no model library.
"""

from __future__ import annotations

import importlib.util
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LIBRARY_WARNINGS = pytest.mark.filterwarnings(
    # Without a compiler the attention of FAR is slow, of which torch warns once.
    "ignore:flex_attention called without:UserWarning",
    # The schedulers of Helios hand numbers of torch to numpy.
    "ignore:__array_wrap__ must accept:DeprecationWarning",
)
"""What the model libraries warn of and their callers can do nothing about."""

PACKAGES = ("torch", "diffusers", "transformers", "accelerate", "ftfy")

GAMMA = 0.333
"""A third, as real checkpoints have it, leaves a covariance that no CPU can factorise."""

SIZE = 64
"""Least width and height of a Helios video, in pixels."""

PROMPT_LENGTH = 32
"""Tokens of a prompt; the tokenizer makes one of each letter."""


def lacking() -> str | None:
    """Why these cannot be built here, or None."""
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


@dataclass(frozen=True, slots=True)
class TinyHelios:
    """What differs between Helios checkpoints."""

    distilled: bool = True
    zero_star: bool = False


def save_helios(folder: Path, variant: TinyHelios | None = None) -> Path:
    """Build a Helios checkpoint and save it in `folder`."""
    import diffusers
    import torch

    variant = variant or TinyHelios()
    torch.manual_seed(0)
    transformer = diffusers.HeliosTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=12,
        text_dim=32,
        freq_dim=32,
        ffn_dim=32,
        num_layers=2,
        rope_dim=(4, 4, 4),
    )
    kind = diffusers.HeliosDMDScheduler if variant.distilled else diffusers.HeliosScheduler
    scheduler = kind(gamma=GAMMA, use_dynamic_shifting=True)
    pipeline = diffusers.HeliosPyramidPipeline(
        **_shared(),
        transformer=transformer,
        scheduler=scheduler,
        is_distilled=variant.distilled,
        is_cfg_zero_star=variant.zero_star,
    )
    pipeline.save_pretrained(folder)
    return folder


@dataclass(frozen=True, slots=True)
class TinyFar:
    """What differs between AnyFlow-FAR checkpoints."""

    partition: tuple[int, ...] = (1, 2, 2, 2, 1)


def save_anyflow_far(folder: Path, variant: TinyFar | None = None) -> Path:
    """Build an AnyFlow-FAR checkpoint and save it in `folder`."""
    import diffusers
    import torch

    variant = variant or TinyFar()
    torch.manual_seed(0)
    transformer = diffusers.AnyFlowFARTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=12,
        text_dim=32,
        freq_dim=32,
        ffn_dim=32,
        num_layers=2,
        chunk_partition=variant.partition,
    )
    pipeline = diffusers.AnyFlowFARPipeline(
        **_shared(),
        transformer=transformer,
        scheduler=diffusers.FlowMapEulerDiscreteScheduler(shift=5.0),
    )
    pipeline.save_pretrained(folder)
    return folder


def tiny_options(folder: Path, **more: str) -> dict[str, str]:
    """The options of an adapter that loads such a checkpoint."""
    size = str(SIZE)
    return {
        "model": str(folder),
        "width": size,
        "height": size,
        "max_sequence_length": str(PROMPT_LENGTH),
        "warm_up": "false",
        **more,
    }


def _shared() -> dict[str, Any]:
    """The parts that both kinds have: tokenizer, text encoder and autoencoder."""
    import diffusers
    import transformers

    letters = string.ascii_letters + string.digits + string.punctuation
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), ("\u2581", -2.0)]
    vocabulary += [(letter, -3.0) for letter in letters]
    config = transformers.UMT5Config(
        vocab_size=len(vocabulary),
        d_model=32,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=4,
        pad_token_id=0,
        eos_token_id=1,
    )
    vae = diffusers.AutoencoderKLWan(
        base_dim=3,
        z_dim=16,
        dim_mult=[1, 1, 1, 1],
        num_res_blocks=1,
        temperal_downsample=[False, True, True],
    )
    return {
        "tokenizer": transformers.T5Tokenizer(vocab=vocabulary, extra_ids=0),
        "text_encoder": transformers.UMT5EncoderModel(config),
        "vae": vae,
    }
