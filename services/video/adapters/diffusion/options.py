"""The options of a diffusion adapter.

Owns: which options there are and what they may be. Does not own: what a request asks for
(`parameters`), the defaults of one model (each adapter's own). Importing this needs no model
library.
"""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = ("auto", "bfloat16", "float16", "float32")
BLENDS = ("linear", "spherical")


@dataclass(frozen=True, slots=True)
class DiffusionOptions:
    """What an operator can set; None: the model's own.

    `model` is a folder, a folder below the model folder, or a hub id; `revision` a commit, branch
    or tag of the hub. `steps` are the denoising steps of a chunk unless the request names them.
    Sizes in pixels; `width`, `height` and `num_frames` are those of a request that names none.
    """

    model: str | None = None
    revision: str | None = None
    offline: bool = False
    dtype: str = "auto"
    blend: str = "linear"
    max_sequence_length: int = 512
    truncate_prompts: bool = False
    width: int | None = None
    height: int | None = None
    num_frames: int | None = None
    steps: int | None = None
    warm_up: bool = True

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype is one of {', '.join(DTYPES)}")
        if self.blend not in BLENDS:
            raise ValueError(f"blend is one of {', '.join(BLENDS)}")
        if (self.width is None) != (self.height is None):
            raise ValueError("width and height are given together")
        for name in ("max_sequence_length", "width", "height", "num_frames", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1")
