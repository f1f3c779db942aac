"""What all generations of a replica share.

Owns: the record, nothing else. Does not own: any of its parts (`services.video.engine` makes them).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from services.video.adapters.base import VideoAdapter
from services.video.metrics import VideoMetrics
from services.video.turns import Turns


@dataclass(frozen=True, slots=True)
class Replica:
    """The model with its threads. `clock` is in seconds and never goes back.

    `turns` is the generation thread; `encoding` and `closing` have one thread each.
    `unsent_chunks` is how many chunks of one generation may wait for the network.
    """

    adapter: VideoAdapter[Any, Any, Any]
    turns: Turns
    encoding: ThreadPoolExecutor
    closing: ThreadPoolExecutor
    metrics: VideoMetrics
    clock: Callable[[], float]
    unsent_chunks: int
