"""`python -m services.tts`: one replica of the speech service.

Owns: reading the settings and starting the process. Does not own: anything else.
"""

from __future__ import annotations

import sys

from services.runtime.admin import serving_admin
from services.runtime.lifecycle import EXIT_SETTINGS, run_main, run_process
from services.runtime.logging import get_logger
from services.runtime.metrics import Metrics
from services.tts.loading import AdapterRefusedError, make_adapter
from services.tts.metrics import TtsMetrics
from services.tts.process import TtsProcess
from services.tts.settings import TtsSettings

_log = get_logger(__name__)


async def _run(settings: TtsSettings) -> int:
    try:
        adapter = make_adapter(settings)
    except AdapterRefusedError as error:
        _log.error("setting_refused", problem=str(error))
        return EXIT_SETTINGS
    metrics = Metrics("tts")
    process = TtsProcess(settings, adapter, TtsMetrics(metrics))
    async with serving_admin(settings.admin, metrics, lambda: process.ready):
        return await run_process("tts", process, settings.drain)


if __name__ == "__main__":
    sys.exit(run_main("tts", TtsSettings, _run))
