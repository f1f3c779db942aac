"""The JSON Schemas of the video endpoint: generated, and held against codec and session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from contracts.errors import Failure
from services.edge.video.codec import decode
from services.edge.video.events import SendControl
from services.edge.video.messages import CLIENT_MESSAGES, SERVER_MESSAGES
from services.edge.video.terms import VideoLimits
from tests.unit.edge.video.session_fixture import Conversation
from tests.unit.edge.video.vectors import server_frames
from tools import video_schemas

SCHEMAS: dict[str, dict[str, Any]] = {
    video_schemas.message_type(struct): json.loads(
        (video_schemas.FOLDER / video_schemas.file_name(struct)).read_text(encoding="utf-8")
    )
    for struct in CLIENT_MESSAGES + SERVER_MESSAGES
}
VALIDATORS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
CLIENT_TYPES = [video_schemas.message_type(struct) for struct in CLIENT_MESSAGES]
SERVER_TYPES = [video_schemas.message_type(struct) for struct in SERVER_MESSAGES]


def test_the_schemas_are_those_of_the_messages() -> None:
    """IO-INV-300: a message that changes without its schema fails here."""
    assert video_schemas.main(["--check"]) == 0
    assert video_schemas.drift() == []


def test_drift_is_reported_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """IO-INV-300: missing files are written, listed and found."""
    monkeypatch.setattr(video_schemas, "FOLDER", tmp_path)
    assert video_schemas.main(["--check"]) == 1
    assert video_schemas.main(["--write"]) == 0
    assert video_schemas.main(["--check"]) == 0
    capsys.readouterr()
    assert video_schemas.main([]) == 0
    assert len(capsys.readouterr().out.split()) == len(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_a_schema(name: str) -> None:
    """IO-INV-300: draft 2020-12, with a title, a sentence, and room for new keys."""
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == name
    assert schema["description"].startswith("Sent by the ")
    assert schema["additionalProperties"] is True
    assert "type" in schema["required"]


@pytest.mark.parametrize("name", SERVER_TYPES)
def test_every_message_of_the_server_fits_its_schema_and_no_other(name: str) -> None:
    """IO-INV-300: what is required is, and no key is sent that the schema does not name."""
    frames = [frame for frame in server_frames() if frame.get("type") == name]
    assert frames
    for frame in frames:
        VALIDATORS[name].validate(frame)
        assert set(frame) <= set(SCHEMAS[name]["properties"])
    for key in SCHEMAS[name]["required"]:
        assert not VALIDATORS[name].is_valid({k: v for k, v in frames[0].items() if k != key})
    for other in set(SERVER_TYPES) - {name}:
        assert not VALIDATORS[other].is_valid(frames[0])


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.integers(-2, 300)
    | st.floats(-1, 40).filter(lambda x: not x.is_integer())
    | st.sampled_from(["m4s", "h264", "free", "640x384", "12", "realtime", ""])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["image_url", "width", "seed", "file_id", "a"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """A client message, some of its fields replaced by anything."""
    name = draw(st.sampled_from([t for t in CLIENT_TYPES if t != "session.interaction"]))
    fields = [key for key in SCHEMAS[name]["properties"] if key != "type"] + ["unheard"]
    changed = draw(st.lists(st.sampled_from(fields), unique=True, max_size=3))
    base = {"prompt": "A."} if name == "session.start" else {}
    return {"type": name, **base, **{key: draw(VALUES) for key in changed}}


@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages())
def test_codec_and_schema_agree(message: dict[str, Any]) -> None:
    """IO-INV-300: whatever stands in a field, both take the message or both refuse it."""
    expected = VALIDATORS[message["type"]].is_valid(message)
    decoded = decode(json.dumps(message), VideoLimits())
    assert (not isinstance(decoded, Failure)) is expected


BODIES: list[tuple[dict[str, Any], bool]] = [
    ({"event": {"prompt": "Snow."}}, True),
    ({"event": {"prompt": "Snow.", "style": 1}, "event_id": "e", "transition_chunks": 3}, True),
    ({"event": {"prompt": "Snow."}, "transition_chunks": 3.0, "event_id": None}, True),
    ({"event": {"prompt": "Snow."}, "transition_chunks": None, "more": 1}, True),
    ({"event": {"prompt": "Snow."}, "transition_chunks": 2.9}, False),
    ({"event": {"prompt": "Snow."}, "transition_chunks": True}, False),
    ({"event": {"prompt": "Snow."}, "transition_chunks": "3"}, False),
    ({"event": {"prompt": "Snow."}, "transition_chunks": -1}, False),
    ({"event": {"prompt": "Snow."}, "event_id": ""}, False),
    ({"event": {"prompt": "Snow."}, "event_id": "e" * 129}, False),
    ({"event": {"prompt": ""}}, False),
    ({"event": {}}, False),
    ({}, False),
]


@pytest.mark.parametrize(("body", "valid"), BODIES)
def test_session_and_schema_agree_on_interactions(body: dict[str, Any], valid: bool) -> None:
    """IO-INV-300, WEIR-164: the one message whose body the session reads itself."""
    message = {"type": "session.interaction", "interaction": body}
    assert VALIDATORS["session.interaction"].is_valid(message) is valid
    talk = Conversation()
    talk.run()
    (answer,) = talk.send("session.interaction", interaction=body)
    assert isinstance(answer, SendControl) is valid
