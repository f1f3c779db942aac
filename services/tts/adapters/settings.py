"""What an adapter is told when it is made.

Owns: the record every adapter's constructor takes. Does not own: environment variables
(`services.tts` reads those), what any option means, reading options (`services.runtime`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.runtime.adapter_options import parse_option_list, read_options

__all__ = ["AdapterSettings", "parse_option_list", "read_options"]

DEFAULT_MODEL_DIR = Path(".models")


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """Settings of one adapter, read once at start-up.

    `model_dir` is the folder of downloaded model files. `concurrency` is how many utterances the
    operator wants spoken at once, None for the adapter's choice. `options` are the adapter's own
    settings as text; an adapter reads them with `read_options` into a record of its own, so a new
    adapter adds options without a new field here.
    """

    model_dir: Path = DEFAULT_MODEL_DIR
    concurrency: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise ValueError("concurrency is at least 1")
