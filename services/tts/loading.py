"""Finding, making and loading the voice adapter.

Owns: the way from settings to a loaded adapter, off the event loop, with every refusal as one clear
sentence. Does not own: adapters, what is done with one (`services.tts.engine`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from services.runtime.logging import get_logger
from services.tts.adapters.base import VoiceAdapter
from services.tts.adapters.registry import resolve_adapter
from services.tts.settings import TtsSettings

_log = get_logger(__name__)


class AdapterRefusedError(Exception):
    """The settings name no usable adapter; the message says which setting and why."""


def make_adapter(settings: TtsSettings) -> VoiceAdapter:
    """Return the adapter that the settings name, not loaded yet. Raises AdapterRefusedError."""
    try:
        factory = resolve_adapter(settings.adapter)
    except (ValueError, ImportError) as error:
        raise AdapterRefusedError(f"TTS_ADAPTER: {error}") from error
    try:
        return factory(settings.for_adapter)
    except (ValueError, ImportError) as error:
        raise AdapterRefusedError(f"TTS_ADAPTER_OPTIONS: {error}") from error


async def load(adapter: VoiceAdapter) -> None:
    """Load the adapter's model. Raises what it raises, ModelUnavailableError for one.

    When cancelled it returns at once, and the loading is abandoned: it cannot be interrupted.
    """
    await _off_the_loop(adapter.load, "load the voice model")


async def close(adapter: VoiceAdapter) -> None:
    """Close the adapter. Like `load` it is abandoned when cancelled."""
    await _off_the_loop(adapter.close, "close the voice model")


async def _off_the_loop(call: Callable[[], None], name: str) -> None:
    """Run `call` on a thread of its own that does not hold up the end of the process.

    An executor's thread would: minutes of loading that nobody waits for any more.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            call()
        except BaseException as raised:  # Whatever it is, whoever awaits must hear of it.
            error = raised
        with suppress(RuntimeError):  # The loop is closed: this was abandoned.
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    await done
