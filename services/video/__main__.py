"""`python -m services.video`: one replica of the video service.

Owns: reading the settings and starting the process. Does not own: anything else.
"""

from __future__ import annotations

import sys

from services.runtime.admin import serving_admin
from services.runtime.lifecycle import EXIT_SETTINGS, run_main, run_process
from services.runtime.loading import AdapterRefusedError, make_adapter
from services.runtime.logging import get_logger
from services.runtime.metrics import Metrics
from services.video.adapters.registry import resolve_adapter
from services.video.metrics import VideoMetrics
from services.video.process import VideoProcess
from services.video.settings import VideoSettings

_log = get_logger(__name__)


async def _run(settings: VideoSettings) -> int:
    try:
        adapter = make_adapter(
            "VIDEO_", lambda: resolve_adapter(settings.adapter), settings.for_adapter
        )
    except AdapterRefusedError as error:
        _log.error("setting_refused", problem=str(error))
        return EXIT_SETTINGS
    metrics = Metrics("video")
    process = VideoProcess(settings, adapter, VideoMetrics(metrics))
    async with serving_admin(settings.admin, metrics, lambda: process.ready):
        return await run_process("video", process, settings.drain)


if __name__ == "__main__":
    sys.exit(run_main("video", VideoSettings, _run))
