"""The JSON Schemas of the speech endpoint: generated, and held against codec and session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from contracts.errors import Failure
from services.edge.speech.codec import DecodedFrame, decode
from services.edge.speech.messages import CLIENT_MESSAGES, SERVER_MESSAGES
from tests.contracts.speech_vectors import vectors
from tools import speech_schemas

SCHEMAS: dict[str, dict[str, Any]] = {
    speech_schemas.message_type(struct): json.loads(
        (speech_schemas.FOLDER / speech_schemas.file_name(struct)).read_text(encoding="utf-8")
    )
    for struct in CLIENT_MESSAGES + SERVER_MESSAGES
}
VALIDATORS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
CLIENT_TYPES = [speech_schemas.message_type(struct) for struct in CLIENT_MESSAGES]
SERVER_TYPES = [speech_schemas.message_type(struct) for struct in SERVER_MESSAGES]


def test_the_schemas_are_those_of_the_messages() -> None:
    """IO-INV-300: a message that changes without its schema fails here."""
    assert speech_schemas.main(["--check"]) == 0
    assert speech_schemas.drift() == []


def test_drift_is_reported_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """IO-INV-300: a missing, a changed and a surplus file."""
    monkeypatch.setattr(speech_schemas, "FOLDER", tmp_path)
    assert speech_schemas.main(["--check"]) == 1
    assert speech_schemas.main(["--write"]) == 0
    assert speech_schemas.main(["--check"]) == 0
    (tmp_path / "speech.error.schema.json").write_text("{}", encoding="utf-8")
    (tmp_path / "speech.input.done.schema.json").unlink()
    (tmp_path / "speech.input.shout.schema.json").write_text("{}", encoding="utf-8")
    capsys.readouterr()
    assert speech_schemas.main(["--check"]) == 1
    assert capsys.readouterr().err.count("drift") == 3
    assert speech_schemas.main(["--write"]) == 0
    assert speech_schemas.drift() == []
    assert speech_schemas.main([]) == 0
    assert len(capsys.readouterr().out.split()) == len(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_a_schema(name: str) -> None:
    """IO-INV-300: draft 2020-12, with a title, a sentence, and room for new keys."""
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == name
    assert schema["description"].startswith("Sent by the ")
    assert schema["additionalProperties"] is True
    assert schema["properties"]["type"] == {"enum": [name]}
    assert "type" in schema["required"]


def server_frames() -> list[dict[str, Any]]:
    """Every JSON frame that the server sends in the vectors; the vectors' test proves them."""
    return [
        frame
        for vector in vectors()
        for step in vector["steps"]
        for frame in step.get("server", [])
        if "type" in frame
    ]


@pytest.mark.parametrize("name", SERVER_TYPES)
def test_every_message_of_the_server_fits_its_schema(name: str) -> None:
    """IO-INV-300: and has no key that the schema does not name."""
    frames = [frame for frame in server_frames() if frame["type"] == name]
    assert frames
    for frame in frames:
        VALIDATORS[name].validate(frame)
        assert set(frame) <= set(SCHEMAS[name]["properties"])


@pytest.mark.parametrize("name", SERVER_TYPES)
def test_a_schema_refuses_a_message_without_its_fields(name: str) -> None:
    """IO-INV-300: the other direction: what is required is, and no other type is taken for it."""
    frame = next(frame for frame in server_frames() if frame["type"] == name)
    for key in SCHEMAS[name]["required"]:
        assert not VALIDATORS[name].is_valid({k: v for k, v in frame.items() if k != key})
    for other in set(SERVER_TYPES) - {name}:
        assert not VALIDATORS[other].is_valid(frame)


def codec_accepts(frame: str) -> bool:
    decoded = decode(frame, max_config_characters=10**7, max_message_characters=10**7)
    assert isinstance(decoded, DecodedFrame | Failure)
    return isinstance(decoded, DecodedFrame)


TABLE: list[tuple[dict[str, Any], bool]] = [
    ({"type": "session.config"}, True),
    ({"type": "session.config", "unheard": {"of": [None]}}, True),
    ({"type": "session.config", "speed": 0.25, "seed": -(2**63), "events": []}, True),
    ({"type": "session.config", "speed": 0.2}, False),
    ({"type": "session.config", "seed": 2**63}, False),
    ({"type": "session.config", "sample_rate": 11025}, False),
    ({"type": "session.config", "sample_rate": 48000}, True),
    ({"type": "session.config", "response_format": "ogg"}, False),
    ({"type": "session.config", "events": ["e" * 64] * 32}, True),
    ({"type": "session.config", "events": ["e" * 65]}, False),
    ({"type": "session.config", "events": ["e"] * 33}, False),
    ({"type": "session.config", "speaker_embedding": [0] * 8192}, True),
    ({"type": "session.config", "speaker_embedding": [0] * 8193}, False),
    ({"type": "session.config", "max_new_tokens": 0}, False),
    ({"type": "input.text", "text": "你😀"}, True),
    ({"type": "input.text", "text": None}, False),
    ({"type": "input.text"}, True),
    ({"type": "input.cancel", "played_ms": 0}, True),
    ({"type": "input.cancel", "played_ms": -0.5}, False),
    ({"type": "input.cancel", "played_ms": True}, False),
    ({"type": "input.explain", "packets": ["a", "b"], "profile": "p"}, True),
    ({"type": "input.explain", "packets": ["a", 1]}, False),
]


@pytest.mark.parametrize(("message", "valid"), TABLE)
def test_codec_and_schema_agree_on_known_messages(message: dict[str, Any], valid: bool) -> None:
    """IO-INV-300: both take it, or both refuse it."""
    assert VALIDATORS[message["type"]].is_valid(message) is valid
    assert codec_accepts(json.dumps(message)) is valid


def test_a_number_with_a_fraction_point_is_no_integer_to_the_codec() -> None:
    """IO-INV-300: the one known difference: a schema cannot tell 1.0 from 1, the codec does."""
    message = {"type": "session.config", "seed": 1.0}
    assert VALIDATORS["session.config"].is_valid(message)
    assert not codec_accepts(json.dumps(message))


FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.integers(-2, 5)
    | FRACTIONS
    | st.floats(0.2, 4.1).filter(lambda x: not x.is_integer())
    | st.sampled_from([8000, 48000, "wav", "opus", "clause", "Base", "commitment", "Auto", ""])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=70)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """A client message, some of its fields replaced by anything."""
    name = draw(st.sampled_from(CLIENT_TYPES))
    fields = [key for key in SCHEMAS[name]["properties"] if key != "type"] + ["unheard", "x.y"]
    changed = draw(st.lists(st.sampled_from(fields), unique=True, max_size=3))
    return {"type": name, **{key: draw(VALUES) for key in changed}}


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages())
def test_codec_and_schema_agree_on_mutated_messages(message: dict[str, Any]) -> None:
    """IO-INV-300: whatever stands in a field, both take the message or both refuse it."""
    expected = VALIDATORS[message["type"]].is_valid(message)
    assert codec_accepts(json.dumps(message)) is expected
    assert codec_accepts(json.dumps(message, ensure_ascii=False)) is expected
