"""The settings record of each process, by the name of its compose service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.edge.settings import EdgeSettings
from services.tts.settings import TtsSettings
from services.video.settings import VideoSettings

RECORDS: Mapping[str, type[Any]] = {
    "edge": EdgeSettings,
    "tts": TtsSettings,
    "video": VideoSettings,
}
