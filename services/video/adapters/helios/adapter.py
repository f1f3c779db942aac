"""The `helios` adapter.

Owns: which pipeline and which checkpoint. Does not own: anything it does (`model`), loading
(`diffusion`). Enforces: WEIR-359 (importing this imports no model library).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from services.video.adapters.diffusion.adapter import DiffusionAdapter, DiffusionModel
from services.video.adapters.diffusion.options import DiffusionOptions

if TYPE_CHECKING:
    from services.video.adapters.diffusion.embeddings import PromptEncoder
    from services.video.adapters.helios.model import HeliosState


class HeliosAdapter(DiffusionAdapter["HeliosState"]):
    """A `VideoAdapter` for checkpoints of `HeliosPyramidPipeline`."""

    pipeline = "HeliosPyramidPipeline"
    default_model = "BestWishYsh/Helios-Distilled"

    def make_model(
        self, pipeline: Any, prompts: PromptEncoder, options: DiffusionOptions, name: str
    ) -> DiffusionModel[HeliosState]:
        """Return what runs `pipeline`. Raises ValueError when the options do not go with it."""
        from services.video.adapters.helios.model import HeliosModel

        return HeliosModel(pipeline, prompts, options, name)
