"""Text frames to messages and back."""

from __future__ import annotations

import json

import msgspec
import pytest

from contracts.errors import Failure, Reason
from services.edge.speech.codec import DecodedFrame, decode, encode
from services.edge.speech.messages import (
    CLIENT_MESSAGES,
    AudioStart,
    ClientMessage,
    ErrorMessage,
    InputCancel,
    InputCancelled,
    InputDone,
    InputText,
    SessionConfig,
)


def parse(
    frame: str, config: int = 1000, other: int = 500
) -> DecodedFrame[ClientMessage] | Failure:
    return decode(frame, max_config_characters=config, max_message_characters=other)


def refused(frame: str) -> Failure:
    decoded = parse(frame)
    assert isinstance(decoded, Failure)
    return decoded


VALID = [
    ('{"type":"session.config"}', SessionConfig()),
    ('{"type":"session.config","voice":null,"speed":null}', SessionConfig()),
    ('{"type":"session.config","speed":2}', SessionConfig(speed=2.0)),
    (
        '{"type":"session.config","response_format":"mulaw","sample_rate":8000}',
        SessionConfig(response_format="mulaw", sample_rate=8000),
    ),
    ('{"type":"session.config","seed":-9223372036854775808}', SessionConfig(seed=-(2**63))),
    ('{"type":"session.config","speed":0.25}', SessionConfig(speed=0.25)),
    ('{"type":"session.config","speed":4.0}', SessionConfig(speed=4.0)),
    (
        '{"type":"session.config","events":["text.pending"]}',
        SessionConfig(events=["text.pending"]),
    ),
    ('{"type":"input.text","text":"\\u4f60\\ud83d\\ude00"}', InputText("你😀")),
    ('{"type":"input.text"}', InputText("")),
    ('  {"text":"a","type":"input.text"}\n', InputText("a")),
    ('{"type":"input.done"}', InputDone()),
    ('{"type":"input.cancel"}', InputCancel()),
    ('{"type":"input.cancel","played_ms":12.5}', InputCancel(12.5)),
    ('{"type":"input.cancel","played_ms":0}', InputCancel(0.0)),
]

NO_JSON = [
    "",
    "nul",
    "{",
    '{"type":"input.done"} {}',
    '{"type":"input.text","text":NaN}',
    '{"type":"input.text","text":"\\ud800"}',
    '{"type":"input.text","text":"\ud800"}',
    '{"type":"input.text","\\udfff":1}',
    '{"type":"session.config","speed":1e999}',
    "[" * 499,
    "\ufeff{}",
]

WRONG_TYPE = [
    "{}",
    '{"type":null}',
    '{"type":7}',
    '{"type":["input.done"]}',
    '{"type":"audio.done"}',
]

WRONG_FIELD = [
    ("session.config", "speed", "4.01", "float <= 4.0"),
    ("session.config", "speed", "0.24", "float >= 0.25"),
    ("session.config", "speed", '"SECRET"', "float | null"),
    ("session.config", "speed", "true", "float | null"),
    ("session.config", "seed", "9223372036854775808", "int <= 9223372036854775807"),
    ("session.config", "seed", "0.5", "int | null"),
    ("session.config", "voice", "7", "str | null"),
    ("session.config", "stream_audio", '"SECRET"', "bool | null"),
    ("session.config", "stream_audio", "1", "bool | null"),
    ("session.config", "response_format", '"SECRET"', "one of wav, pcm, flac, mp3, opus, mulaw"),
    (
        "session.config",
        "sample_rate",
        "11025",
        "one of 8000, 16000, 22050, 24000, 44100, 48000",
    ),
    ("session.config", "split_granularity", '"SECRET"', "one of none, sentence, clause"),
    ("session.config", "text_input_mode", '"SECRET"', "one of buffered, commitment"),
    ("session.config", "task_type", '"SECRET"', "one of CustomVoice, VoiceDesign, Base"),
    ("session.config", "max_new_tokens", "0", "int >= 1"),
    ("session.config", "events", '"SECRET"', "array | null"),
    ("input.text", "text", "null", "str"),
    ("input.text", "text", '["SECRET"]', "str"),
    ("input.cancel", "played_ms", "-1", "float >= 0.0"),
    ("input.explain", "packets", '"SECRET"', "array | null"),
]


@pytest.mark.parametrize(("frame", "message"), VALID)
def test_a_valid_frame_is_its_message(frame: str, message: msgspec.Struct) -> None:
    """IO-INV-300: the JSON contract is read as written, with nothing to warn about."""
    assert parse(frame) == DecodedFrame(message)


@pytest.mark.parametrize("struct", CLIENT_MESSAGES)
def test_every_client_message_is_known_by_its_type(struct: type[msgspec.Struct]) -> None:
    """IO-INV-300: every message of the contract can be sent."""
    tag = struct.__struct_config__.tag
    assert parse(json.dumps({"type": tag})) == DecodedFrame(struct())


@pytest.mark.parametrize("frame", NO_JSON)
def test_what_is_not_json_is_refused(frame: str) -> None:
    """WEIR-210: broken JSON, lone surrogates, NaN and endless nesting are INVALID_MESSAGE."""
    failed = refused(frame)
    assert failed.reason is Reason.INVALID_MESSAGE
    assert failed.message == "The frame is not valid JSON."


@pytest.mark.parametrize("frame", ["[]", '"input.done"', "7", "null"])
def test_json_that_is_no_object_is_refused(frame: str) -> None:
    """WEIR-210: a message is an object."""
    assert refused(frame).message == "The frame is not a JSON object."


@pytest.mark.parametrize("frame", WRONG_TYPE)
def test_an_unknown_type_is_refused(frame: str) -> None:
    """WEIR-301: unknown types are an error, a server message's type among them."""
    failed = refused(frame)
    assert failed.reason is Reason.INVALID_MESSAGE
    assert failed.violations[0].field == "type"


@pytest.mark.parametrize(("name", "field", "value", "expected"), WRONG_FIELD)
def test_a_wrong_field_is_named_and_its_value_is_not(
    name: str, field: str, value: str, expected: str
) -> None:
    """WEIR-210, WEIR-201: the path and what is expected, never what was sent."""
    failed = refused(f'{{"type":"{name}","{field}":{value}}}')
    assert failed.reason is Reason.INVALID_MESSAGE
    assert failed.message == f"The field {field} of {name} must be {expected}."
    assert [(v.field, v.description) for v in failed.violations] == [(field, f"must be {expected}")]
    assert "SECRET" not in repr(failed)


@pytest.mark.parametrize(
    ("frame", "path"),
    [
        ('{"type":"session.config","speaker_embedding":[0,"x"]}', "speaker_embedding[1]"),
        ('{"type":"session.config","events":["a",7]}', "events[1]"),
        ('{"type":"input.explain","packets":[7]}', "packets[0]"),
    ],
)
def test_an_item_is_named_by_its_index(frame: str, path: str) -> None:
    """WEIR-210: the path reaches into lists."""
    assert refused(frame).violations[0].field == path


def test_an_embedding_has_its_limit() -> None:
    """WEIR-210: 8192 values are allowed, one more is not."""
    frame = '{"type":"session.config","speaker_embedding":[' + ",".join(["0"] * 8192) + "]}"
    assert isinstance(parse(frame, config=100_000), DecodedFrame)
    assert isinstance(parse(frame.replace("]", ",0]"), config=100_000), Failure)


def test_unknown_keys_are_ignored_and_named() -> None:
    """WEIR-301: the message counts, and each key without a meaning is reported."""
    assert parse('{"type":"input.text","text":"a","lang":"x","b":{"c":[1]}}') == DecodedFrame(
        InputText("a"),
        ("unknown key ignored: input.text.lang", "unknown key ignored: input.text.b"),
    )


def test_reports_of_unknown_keys_are_bounded() -> None:
    """WEIR-301: eight keys are named, cut at 64 characters, and the rest are counted."""
    keys = [letter * 70 for letter in "abcdefghij"]
    decoded = parse(json.dumps({"type": "input.done", **dict.fromkeys(keys, 1)}), other=1000)
    assert isinstance(decoded, DecodedFrame)
    assert decoded.warnings == (
        *(f"unknown key ignored: input.done.{letter * 64}" for letter in "abcdefgh"),
        "2 more unknown keys ignored in input.done",
    )


@pytest.mark.parametrize(
    ("name", "field", "limit"),
    [("session.config", "instructions", 1000), ("input.text", "text", 500)],
)
def test_the_limit_itself_is_allowed(name: str, field: str, limit: int) -> None:
    """WEIR-210: a frame of exactly its limit is read, one character more is MESSAGE_TOO_LARGE."""
    empty = len(f'{{"type":"{name}","{field}":""}}')
    frame = f'{{"type":"{name}","{field}":"{"x" * (limit - empty)}"}}'
    assert len(frame) == limit
    assert isinstance(parse(frame), DecodedFrame)
    too_long = refused(frame + " ")
    assert too_long.reason is Reason.MESSAGE_TOO_LARGE
    assert str(limit) in too_long.message


def test_each_kind_of_message_has_its_own_limit() -> None:
    """WEIR-210: whichever of the two limits is the larger."""
    config, text = '{"type":"session.config"}   ', '{"type":"input.done"}       '
    assert isinstance(parse(config, config=20, other=100), Failure)
    assert isinstance(parse(text, config=100, other=20), Failure)


def test_characters_are_counted_not_bytes() -> None:
    """WEIR-210: a limit means the same for every script."""
    frame = '{"type":"input.text","text":"' + "你" * 400 + '"}'
    assert isinstance(parse(frame), DecodedFrame)


def test_a_field_that_does_not_apply_is_absent() -> None:
    """IO-INV-300: absent is absent; null stands only where null has a meaning."""
    error = ErrorMessage(message="No.", code="session_state")
    assert encode(error) == '{"type":"error","message":"No.","code":"session_state"}'
    assert json.loads(encode(InputCancelled(None, 0, 0)))["utterance_index"] is None
    start = AudioStart(0, 0, "你", "pcm", 24000, 1, "s.0.0", 0, 0, 1)
    assert "warnings" not in json.loads(encode(start))
    assert json.loads(encode(start))["sentence_text"] == "你"
