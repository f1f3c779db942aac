"""The settings of the speech service."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.runtime.settings import SettingsError, describe, read_settings
from services.tts.settings import TtsSettings


def test_every_setting_has_the_services_prefix_and_a_sentence() -> None:
    """WEIR-050: the reference page can be generated from the record."""
    settings = describe(TtsSettings)
    assert len({setting.env for setting in settings}) == len(settings)
    for setting in settings:
        assert setting.env.startswith("TTS_")
        assert setting.doc.endswith(".")


def test_the_defaults_are_a_working_replica() -> None:
    """WEIR-050: nothing needs to be set; loopback, and the adapter's own choice of slots."""
    settings = read_settings(TtsSettings, {})
    assert settings.server.host == "127.0.0.1"
    assert settings.for_adapter.model_dir == Path(".models")
    assert settings.for_adapter.concurrency is None
    assert settings.for_adapter.options == {}


def test_what_is_set_reaches_the_adapter() -> None:
    """WEIR-050: folder, slots and options are read once, here."""
    adapter = read_settings(
        TtsSettings,
        {"TTS_MODEL_DIR": "/models", "TTS_SLOTS": "3", "TTS_ADAPTER_OPTIONS": "a=1, b = x"},
    ).for_adapter
    assert adapter.model_dir == Path("/models")
    assert adapter.concurrency == 3
    assert adapter.options == {"a": "1", "b": "x"}


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"TTS_SLOTS": "0"}, ["TTS_SLOTS"]),
        ({"TTS_CHUNK_MS": "601"}, ["TTS_CHUNK_MS"]),
        ({"TTS_ADAPTER_OPTIONS": "novalue"}, ["TTS_ADAPTER_OPTIONS"]),
        (
            {"TTS_RETRY_DELAY_MIN_MS": "200", "TTS_RETRY_DELAY_MAX_MS": "100"},
            ["TTS_RETRY_DELAY_MIN_MS", "TTS_RETRY_DELAY_MAX_MS"],
        ),
        ({"TTS_QUEUE_REQUESTS": "-1", "TTS_MAX_CALL_S": "soon"}, ["TTS_QUEUE", "TTS_MAX_CALL_S"]),
    ],
)
def test_what_cannot_be_is_refused_by_name(environ: dict[str, str], named: list[str]) -> None:
    """WEIR-050: every problem of the environment in one error, each with its variable."""
    with pytest.raises(SettingsError) as raised:
        read_settings(TtsSettings, environ)
    for name in named:
        assert name in str(raised.value)


def test_a_raw_chunk_always_fits_a_chunk_of_a_file() -> None:
    """WEIR-184: the greatest raw chunk, 16 bit at 48 kHz, stays below 64 KiB."""
    (chunk,) = [s for s in describe(TtsSettings) if s.env == "TTS_CHUNK_MS"]
    greatest_ms = int(chunk.bounds.rpartition(" ")[2])
    assert greatest_ms * 48 * 2 <= 64 * 1024
