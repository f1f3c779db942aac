"""What a video adapter is told when it is made.

Owns: the record every adapter's constructor takes. Does not own: environment variables
(`services.video.settings`), what any option means, reading options (`services.runtime`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_MODEL_DIR = Path(".models")
DEFAULT_DEVICE = "auto"


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """Settings of one adapter, read once at start-up.

    `model_dir` is the folder of downloaded model files; `device` where the model runs, as torch
    names it, or auto. `options` are the adapter's own settings as text; an adapter reads them with
    `services.runtime.adapter_options.read_options` into a record of its own.
    """

    model_dir: Path = DEFAULT_MODEL_DIR
    device: str = DEFAULT_DEVICE
    options: Mapping[str, str] = field(default_factory=dict)
