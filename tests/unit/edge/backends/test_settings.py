"""The backend settings as a process reads them."""

from __future__ import annotations

import pytest

from services.edge.backends.settings import PoolSettings, TtsBackendSettings
from services.edge.backends.targets import Target
from services.runtime.settings import SettingsError, read_settings


def test_targets_are_read_from_the_environment() -> None:
    """WEIR-050: EDGE_TTS_TARGETS is a list separated by commas."""
    settings = read_settings(TtsBackendSettings, {"EDGE_TTS_TARGETS": "10.0.0.1:1, tts:2"})
    assert settings.parsed_targets == (Target("10.0.0.1", 1), Target("tts", 2))


def test_the_defaults_are_valid() -> None:
    """WEIR-050: a process starts without any variable."""
    assert read_settings(TtsBackendSettings, {}) == TtsBackendSettings()
    assert read_settings(PoolSettings, {}) == PoolSettings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EDGE_TTS_TARGETS", "tts"),
        ("EDGE_TTS_ACCEPT_TIMEOUT_S", "0"),
        ("EDGE_TTS_STALL_TIMEOUT_S", "-1"),
        ("EDGE_TTS_RETRIES_AFTER_ACCEPT", "-1"),
        ("EDGE_TTS_RETRY_BACKOFF_FIRST_S", "9"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(variable: str, value: str) -> None:
    """WEIR-050: in one error, before anything starts."""
    with pytest.raises(SettingsError):
        read_settings(TtsBackendSettings, {variable: value})


@pytest.mark.parametrize(
    "variable", ["EDGE_BACKEND_PROBE_BACKOFF_FIRST_S", "EDGE_BACKEND_OUTLIER_BACKOFF_FIRST_S"]
)
def test_a_backoff_that_begins_above_its_end_is_refused(variable: str) -> None:
    """WEIR-050: records refuse what only makes no sense together."""
    with pytest.raises(SettingsError):
        read_settings(PoolSettings, {variable: "60"})
