"""The `anyflow_far` adapter.

Owns: which pipeline and which checkpoint. Does not own: anything it does (`model`), loading
(`diffusion`). Enforces: WEIR-359 (importing this imports no model library).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from services.video.adapters.diffusion.adapter import DiffusionAdapter, DiffusionModel
from services.video.adapters.diffusion.options import DiffusionOptions

if TYPE_CHECKING:
    from services.video.adapters.anyflow_far.model import FarState
    from services.video.adapters.diffusion.embeddings import PromptEncoder


class AnyFlowFarAdapter(DiffusionAdapter["FarState"]):
    """A `VideoAdapter` for checkpoints of `AnyFlowFARPipeline`."""

    pipeline = "AnyFlowFARPipeline"
    default_model = "nvidia/AnyFlow-FAR-Wan2.1-1.3B-Diffusers"

    def make_model(
        self, pipeline: Any, prompts: PromptEncoder, options: DiffusionOptions, name: str
    ) -> DiffusionModel[FarState]:
        """Return what runs `pipeline`. Raises ValueError when the options do not go with it."""
        from services.video.adapters.anyflow_far.model import FarModel

        return FarModel(pipeline, prompts, options, name)
