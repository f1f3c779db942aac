"""What an operator can set about the edge."""

from __future__ import annotations

from dataclasses import fields

import pytest

from services.edge.settings import EdgeSettings, SpeechSettings
from services.edge.speech.terms import SpeechLimits
from services.runtime.settings import SettingsError, read_settings


def problems(**environ: str) -> tuple[str, ...]:
    """Return the problems of an environment that must be refused."""
    with pytest.raises(SettingsError) as refused:
        read_settings(EdgeSettings, environ)
    return refused.value.problems


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "192.168.1.5", "edge.example", "::2"])
def test_a_public_address_needs_the_operators_word(host: str) -> None:
    """WEIR-180: without a key the edge is not opened to other machines by one variable."""
    (problem,) = problems(EDGE_HOST=host)
    assert "EDGE_HOST" in problem
    assert "EDGE_ALLOW_ANONYMOUS=1" in problem
    settings = read_settings(EdgeSettings, {"EDGE_HOST": host, "EDGE_ALLOW_ANONYMOUS": "1"})
    assert settings.host == host


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LocalHost"]
)
def test_a_loopback_address_needs_nothing(host: str) -> None:
    """WEIR-180: what only this machine reaches may be served without a key."""
    assert read_settings(EdgeSettings, {"EDGE_HOST": host}).host == host


def test_all_problems_are_told_in_one_error() -> None:
    """WEIR-050: an operator mends an environment once, not one variable at a time."""
    told = problems(
        EDGE_PORT="70000",
        EDGE_MAX_SESSIONS="0",
        EDGE_SPEECH_IDLE_TIMEOUT_S="soon",
        EDGE_COMMITMENT_PROFILES="x",
        EDGE_UNKNOWN="1",
    )
    for name in (
        "EDGE_PORT",
        "EDGE_MAX_SESSIONS",
        "EDGE_SPEECH_IDLE_TIMEOUT_S",
        "EDGE_COMMITMENT_PROFILES",
        "EDGE_UNKNOWN",
    ):
        assert any(name in problem for problem in told), f"{name} is missing in {told}"


def test_a_public_address_is_told_beside_other_problems() -> None:
    """WEIR-050: the rule over several variables hides no other problem."""
    told = problems(EDGE_HOST="0.0.0.0", EDGE_SPEECH_READY_SEGMENTS="0")
    assert any("EDGE_SPEECH_READY_SEGMENTS" in problem for problem in told)


def test_the_defaults_are_the_documented_limits() -> None:
    """WEIR-174: the figures that clients of the endpoint rely on."""
    settings = read_settings(EdgeSettings, {})
    limits = settings.speech.limits()
    assert limits == SpeechLimits()
    assert limits.config_timeout_s == 10
    assert limits.idle_timeout_s == 30
    assert limits.config_message_characters == 4 * 1024 * 1024
    assert limits.message_characters == 128 * 1024
    assert limits.utterance_characters == 131_072
    assert limits.pending_characters == 4096
    assert limits.ready_segments == 8
    assert settings.connection.max_frame_bytes == 16 * 1024 * 1024
    assert settings.connection.send_deadline_s == 30
    assert settings.transmission().retry_deadline_s == 30
    assert settings.speech.commitment_profile == "zh_en_special_v1"
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert not settings.speech.strict


def test_a_frame_holds_the_largest_message_in_any_script() -> None:
    """WEIR-174: four bytes a character, or a valid message would close the connection."""
    settings = read_settings(EdgeSettings, {})
    longest = settings.speech.config_message_characters
    assert settings.connection.max_frame_bytes >= 4 * longest


def test_every_limit_of_a_session_can_be_set() -> None:
    """WEIR-174: no limit is fixed in code."""
    changed = {
        "EDGE_SPEECH_CONFIG_TIMEOUT_S": "1",
        "EDGE_SPEECH_IDLE_TIMEOUT_S": "2",
        "EDGE_SPEECH_CONFIG_MESSAGE_CHARACTERS": "3000",
        "EDGE_SPEECH_MESSAGE_CHARACTERS": "4000",
        "EDGE_SPEECH_UTTERANCE_CHARACTERS": "5",
        "EDGE_SPEECH_PENDING_CHARACTERS": "6",
        "EDGE_SPEECH_READY_SEGMENTS": "7",
        "EDGE_SPEECH_SEGMENT_FILE_BYTES": "8000",
    }
    limits = read_settings(EdgeSettings, changed).speech.limits()
    assert limits == SpeechLimits(1.0, 2.0, 3000, 4000, 5, 6, 7, 8000)
    assert len(changed) == len(fields(SpeechLimits))
    assert {f.name for f in fields(SpeechLimits)} <= {f.name for f in fields(SpeechSettings)}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {"localhost", "127.0.0.1", "::1"}),
        ({"EDGE_HOST": "[::1]"}, {"localhost", "127.0.0.1", "::1"}),
        (
            {"EDGE_HOST": "10.0.0.1", "EDGE_ALLOW_ANONYMOUS": "1"},
            {"localhost", "127.0.0.1", "::1", "10.0.0.1"},
        ),
        (
            {"EDGE_ALLOWED_HOSTS": "Voice.Example,edge"},
            {"localhost", "127.0.0.1", "::1", "voice.example", "edge"},
        ),
    ],
)
def test_the_known_hosts_are_the_local_ones_the_own_and_the_listed(
    environ: dict[str, str], expected: set[str]
) -> None:
    """WEIR-170: in lower case, as they are compared."""
    assert read_settings(EdgeSettings, environ).hosts() == expected


def test_listed_origins_are_compared_in_one_form() -> None:
    """WEIR-170: case and a final slash make no difference."""
    environ = {"EDGE_ALLOWED_ORIGINS": "https://App.Example/,http://b.example:81"}
    expected = {"https://app.example", "http://b.example:81"}
    assert read_settings(EdgeSettings, environ).origins() == expected
