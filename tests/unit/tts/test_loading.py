"""From settings to a loaded adapter."""

from __future__ import annotations

import asyncio
import threading

import pytest

from services.tts import loading
from services.tts.adapters.base import ModelUnavailableError
from services.tts.adapters.tone import ToneAdapter
from services.tts.settings import TtsSettings
from tests.unit.tts.support import ScriptedAdapter, steps_of

TIMEOUT_S = 10.0


class Loading(ScriptedAdapter):
    """Notes where it is loaded, and waits or fails there as the test says."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__(steps_of())
        self._error = error
        self.may_load = threading.Event()
        self.thread: threading.Thread | None = None

    def load(self) -> None:
        """Wait, then fail or not."""
        self.thread = threading.current_thread()
        assert self.may_load.wait(TIMEOUT_S)
        if self._error is not None:
            raise self._error


def test_an_adapter_is_made_from_its_name_and_options() -> None:
    """WEIR-310: a registered name, or the place of a class."""
    for name in ("tone", "services.tts.adapters.tone:ToneAdapter"):
        adapter = loading.make_adapter(TtsSettings(adapter=name, options="step_ms=60", slots=3))
        assert isinstance(adapter, ToneAdapter)
        assert adapter.concurrency == 3


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (TtsSettings(adapter="nobody"), "TTS_ADAPTER:"),
        (TtsSettings(adapter="no.such.module:Class"), "TTS_ADAPTER:"),
        (TtsSettings(adapter="tone", options="step_ms=0"), "TTS_ADAPTER_OPTIONS:"),
        (TtsSettings(adapter="tone", options="unknown=1"), "TTS_ADAPTER_OPTIONS:"),
    ],
)
def test_an_adapter_that_cannot_be_made_is_refused_with_the_variable_to_change(
    settings: TtsSettings, variable: str
) -> None:
    """WEIR-310: never a guess; the message starts with the variable."""
    with pytest.raises(loading.AdapterRefusedError, match=variable):
        loading.make_adapter(settings)


async def test_loading_runs_on_a_thread_that_cannot_hold_up_the_process() -> None:
    """WEIR-080: the loop goes on meanwhile, and a daemon thread is not waited for at the end."""
    adapter = Loading()
    load = asyncio.create_task(loading.load(adapter))
    await asyncio.sleep(0)
    adapter.may_load.set()
    async with asyncio.timeout(TIMEOUT_S):
        await load
    assert adapter.thread is not None
    assert adapter.thread is not threading.main_thread()
    assert adapter.thread.daemon


@pytest.mark.parametrize("error", [ModelUnavailableError("no weights"), SystemExit(3)])
async def test_whatever_loading_raises_is_raised(error: BaseException) -> None:
    """WEIR-080: even what would end a thread in silence is heard of."""
    adapter = Loading(error)
    adapter.may_load.set()
    with pytest.raises(BaseException) as raised:  # noqa: PT011  # the very object is compared
        await loading.load(adapter)
    assert raised.value is error


async def test_a_cancelled_load_is_abandoned() -> None:
    """WEIR-080: a model that takes minutes does not keep a process that shall end."""
    adapter = Loading()
    load = asyncio.create_task(loading.load(adapter))
    await asyncio.sleep(0)
    load.cancel()
    with pytest.raises(asyncio.CancelledError):
        await load
    adapter.may_load.set()
    assert adapter.thread is not None
    await asyncio.to_thread(adapter.thread.join, TIMEOUT_S)
    assert not adapter.thread.is_alive()
