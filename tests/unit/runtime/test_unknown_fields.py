"""A request with anything that this build does not know is refused."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from weir.media.v1 import audio_pb2, identity_pb2, text_pb2
from weir.media.v1.audio_pb2 import AUDIO_ENCODING_PCM_S16LE as PCM
from weir.media.v1.modality_pb2 import MODALITY_TEXT
from weir.tts.v1 import tts_pb2
from weir.tts.v1.tts_pb2 import TASK_TYPE_BASE as BASE

from contracts.errors import GrpcCode, Reason, WeirError
from services.runtime.errors import refuse_unknown_fields

UNKNOWN = b"\xa2\x06\x03new"
"""Field 100 with the bytes `new`."""

Field = descriptor_pb2.FieldDescriptorProto


def sample_class() -> type[Message]:
    """Return a message type with a nested message alone, in a list, in maps and in a oneof."""
    file = descriptor_pb2.FileDescriptorProto(name="sample.proto", package="s", syntax="proto3")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="KIND_UNSPECIFIED", number=0)
    kind.value.add(name="KIND_ONE", number=1)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="text", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    outer = file.message_type.add(name="Outer")
    for entry, value in (("ByNameEntry", ".s.Inner"), ("KindsEntry", ".s.Kind")):
        held = outer.nested_type.add(name=entry)
        held.options.map_entry = True
        held.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
        type_ = Field.TYPE_MESSAGE if value == ".s.Inner" else Field.TYPE_ENUM
        held.field.add(
            name="value", number=2, type=type_, type_name=value, label=Field.LABEL_OPTIONAL
        )
    outer.oneof_decl.add(name="choice")
    message, enum = Field.TYPE_MESSAGE, Field.TYPE_ENUM
    single, many = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED
    add = outer.field.add
    add(name="one", number=1, type=message, type_name=".s.Inner", label=single)
    add(name="many", number=2, type=message, type_name=".s.Inner", label=many)
    add(name="by_name", number=3, type=message, type_name=".s.Outer.ByNameEntry", label=many)
    add(name="kinds", number=4, type=message, type_name=".s.Outer.KindsEntry", label=many)
    add(name="chosen", number=5, type=message, type_name=".s.Inner", label=single, oneof_index=0)
    add(name="numbers", number=6, type=enum, type_name=".s.Kind", label=many)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("s.Outer"))


def paths(message: Message) -> list[str]:
    with pytest.raises(WeirError) as caught:
        refuse_unknown_fields(message)
    failure = caught.value.failure
    assert (failure.reason, failure.code) == (Reason.INVALID_MESSAGE, GrpcCode.INVALID_ARGUMENT)
    return [violation.field for violation in failure.violations]


def full_request() -> tts_pb2.SynthesizeRequest:
    return tts_pb2.SynthesizeRequest(
        identity=identity_pb2.SegmentIdentity(session_id="s", request_id="r", attempt=1),
        text=text_pb2.TextPayload(
            modality=MODALITY_TEXT,
            text="ab",
            spans=[text_pb2.TextSpan(text=t, kind="natural") for t in "ab"],
        ),
        output=audio_pb2.AudioFormat(encoding=PCM, sample_rate_hz=24000, channels=1),
        voice=tts_pb2.VoiceOptions(voice="v", task_type=BASE, speaker_embedding=[0.5] * 100),
        options=tts_pb2.SynthesisOptions(speed=1.0, seed=-1, word_times=True),
    )


def test_a_request_that_is_known_throughout_passes() -> None:
    """WEIR-301: every declared field may be set, also a message that is empty."""
    refuse_unknown_fields(full_request())
    refuse_unknown_fields(tts_pb2.SynthesizeRequest())
    refuse_unknown_fields(tts_pb2.GetCapabilitiesRequest())


@pytest.mark.parametrize(
    ("part", "path"), [("", "."), ("voice", "voice"), ("options", "options"), ("text", "text")]
)
def test_an_unknown_field_is_refused_with_its_place(part: str, path: str) -> None:
    """WEIR-301: at the top and in every nested message; the field's number is told."""
    request = full_request()
    (getattr(request, part) if part else request).MergeFromString(UNKNOWN)
    parsed = tts_pb2.SynthesizeRequest.FromString(request.SerializeToString())
    with pytest.raises(WeirError) as caught:
        refuse_unknown_fields(parsed)
    (violation,) = caught.value.failure.violations
    assert violation.field == path
    assert "100" in violation.description


def test_an_unknown_enum_number_is_refused() -> None:
    """WEIR-301: proto3 keeps numbers it does not know, so they must be looked for."""
    request = full_request()
    request.voice.task_type = 99  # type: ignore[assignment]  # what a newer peer sends
    request.output.encoding = 77  # type: ignore[assignment]  # what a newer peer sends
    assert paths(request) == ["output.encoding", "voice.task_type"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda m: m.one.MergeFromString(UNKNOWN), "one"),
        (lambda m: [m.many.add(), m.many.add().MergeFromString(UNKNOWN)], "many[1]"),
        (lambda m: m.by_name["secret"].MergeFromString(UNKNOWN), "by_name[]"),
        (lambda m: m.kinds.update({"secret": 9}), "kinds[]"),
        (lambda m: m.chosen.MergeFromString(UNKNOWN), "chosen"),
        (lambda m: m.numbers.extend([1, 9]), "numbers[1]"),
    ],
    ids=["one", "list", "map of messages", "map of enums", "oneof", "list of enums"],
)
def test_every_kind_of_nesting_is_looked_into(change: Any, path: str) -> None:
    """WEIR-301: lists, maps and oneofs are looked into; the keys of a map are not told."""
    message: Any = sample_class()()
    change(message)
    assert paths(message) == [path]


def test_known_parts_in_every_kind_of_nesting_pass() -> None:
    """WEIR-301: nothing that is declared is refused."""
    message: Any = sample_class()()
    message.one.text = message.chosen.text = message.many.add().text = message.by_name["k"].text = (
        "x"
    )
    message.kinds["k"] = 1
    message.numbers.extend([0, 1])
    refuse_unknown_fields(message)


def test_the_text_of_the_request_never_stands_in_the_refusal() -> None:
    """WEIR-201: neither values nor what an unknown field holds."""
    request = full_request()
    request.text.text = "secret words"
    request.MergeFromString(b"\xa2\x06\x0csecret words")
    with pytest.raises(WeirError) as caught:
        refuse_unknown_fields(request)
    assert "secret" not in repr(caught.value.failure)
