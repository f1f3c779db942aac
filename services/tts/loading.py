"""Finding, making and loading the voice adapter.

Owns: which class the settings name. Does not own: adapters, threads and refusals
(`services.runtime.loading`), what is done with an adapter (`services.tts.engine`).
"""

from __future__ import annotations

from services.runtime.loading import AdapterRefusedError, off_the_loop
from services.runtime.loading import make_adapter as make
from services.tts.adapters.base import VoiceAdapter
from services.tts.adapters.registry import resolve_adapter
from services.tts.settings import TtsSettings

__all__ = ["AdapterRefusedError", "close", "load", "make_adapter"]


def make_adapter(settings: TtsSettings) -> VoiceAdapter:
    """Return the adapter that the settings name, not loaded yet. Raises AdapterRefusedError."""
    return make("TTS_", lambda: resolve_adapter(settings.adapter), settings.for_adapter)


async def load(adapter: VoiceAdapter) -> None:
    """Load the adapter's model. Raises what it raises, ModelUnavailableError for one.

    When cancelled it returns at once, and the loading is abandoned: it cannot be interrupted.
    """
    await off_the_loop(adapter.load, "load the voice model")


async def close(adapter: VoiceAdapter) -> None:
    """Close the adapter. Like `load` it is abandoned when cancelled."""
    await off_the_loop(adapter.close, "close the voice model")
