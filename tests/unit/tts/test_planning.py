"""Holding a request against what the model declares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.capabilities import TaskType
from contracts.errors import GrpcCode, Reason, WeirError
from contracts.modality import AudioEncoding, AudioFormat
from contracts.speech import SegmentRequest, SynthesisOptions, VoiceOptions
from services.tts.planning import plan
from tests.unit.tts.support import CAPABILITIES, segment

OPTIONS: list[tuple[str, VoiceOptions | SynthesisOptions]] = [
    ("voice.instructions", VoiceOptions(instructions="")),
    ("voice.reference_audio", VoiceOptions(reference_audio=b"")),
    ("voice.reference_text", VoiceOptions(reference_text="x")),
    ("voice.x_vector_only", VoiceOptions(x_vector_only=False)),
    ("voice.speaker_embedding", VoiceOptions(speaker_embedding=(1.0,))),
    ("options.max_new_tokens", SynthesisOptions(max_new_tokens=1)),
    ("options.initial_codec_chunk_frames", SynthesisOptions(initial_codec_chunk_frames=1)),
    ("options.non_streaming_mode", SynthesisOptions(non_streaming_mode=False)),
]


def _with(part: VoiceOptions | SynthesisOptions) -> SegmentRequest:
    if isinstance(part, VoiceOptions):
        return replace(segment(), voice=part)
    return replace(segment(), options=part)


@pytest.mark.parametrize(("path", "part"), OPTIONS)
def test_an_option_that_is_not_declared_is_refused(
    path: str, part: VoiceOptions | SynthesisOptions
) -> None:
    """WEIR-183: presence alone counts, so that even an empty wish is not dropped."""
    with pytest.raises(WeirError) as raised:
        plan(_with(part), CAPABILITIES, None)
    failed = raised.value.failure
    assert (failed.reason, failed.code) == (Reason.UNSUPPORTED_OPTION, GrpcCode.INVALID_ARGUMENT)
    assert [violation.field for violation in failed.violations] == [path]


@pytest.mark.parametrize(("path", "part"), OPTIONS)
def test_an_option_that_is_declared_reaches_the_adapter(
    path: str, part: VoiceOptions | SynthesisOptions
) -> None:
    """WEIR-183: what is declared is passed on unchanged."""
    name = path.rpartition(".")[2]
    declared = replace(CAPABILITIES, options=frozenset({name}))
    utterance = plan(_with(part), declared, None).utterance
    assert getattr(utterance, name) == getattr(part, name)


REFUSED: list[tuple[str, SegmentRequest]] = [
    ("voice.voice", replace(segment(), voice=VoiceOptions(voice="nobody"))),
    ("voice.language", replace(segment(), voice=VoiceOptions(language="French"))),
    ("voice.language", replace(segment(), voice=VoiceOptions("anna", language="Chinese"))),
    ("voice.task_type", replace(segment(), voice=VoiceOptions(task_type=TaskType.BASE))),
]


@pytest.mark.parametrize(("path", "request_"), REFUSED)
def test_a_voice_language_or_task_that_is_not_declared_is_refused(
    path: str, request_: SegmentRequest
) -> None:
    """WEIR-183: the model is never asked for what it did not declare."""
    with pytest.raises(WeirError) as raised:
        plan(request_, CAPABILITIES, None)
    assert raised.value.failure.reason is Reason.UNSUPPORTED_OPTION
    assert [violation.field for violation in raised.value.failure.violations] == [path]


def test_word_times_need_a_model_that_has_them() -> None:
    """WEIR-183: word times are an option like any other."""
    mute = replace(CAPABILITIES, word_times=False)
    with pytest.raises(WeirError) as raised:
        plan(segment(word_times=True), mute, None)
    assert raised.value.failure.reason is Reason.UNSUPPORTED_OPTION
    assert plan(segment(word_times=True), CAPABILITIES, None).utterance.word_times


@pytest.mark.parametrize(
    ("voice", "language", "chosen"),
    [
        ("", "Auto", "anna"),
        ("", "english", "anna"),
        ("", "zh", "bo"),
        ("ANNA", "Auto", "anna"),
        ("bo", "English", "bo"),
    ],
)
def test_without_a_choice_the_voice_is_one_that_speaks_the_language(
    voice: str, language: str, chosen: str
) -> None:
    """WEIR-183: the default voice, unless the language asked for is not one of its languages."""
    request = replace(segment(), voice=VoiceOptions(voice=voice, language=language))
    assert plan(request, CAPABILITIES, None).utterance.voice == chosen


@pytest.mark.parametrize(("length", "accepted"), [(100, True), (101, False)])
def test_the_text_limit_counts_code_points_and_is_inclusive(length: int, accepted: bool) -> None:
    """WEIR-183: MESSAGE_TOO_LARGE starts one code point beyond the limit, not one byte."""
    request = segment(text="水" * length)
    if accepted:
        assert plan(request, CAPABILITIES, None).utterance.text == request.text
        return
    with pytest.raises(WeirError) as raised:
        plan(request, CAPABILITIES, None)
    assert raised.value.failure.reason is Reason.MESSAGE_TOO_LARGE
    assert "水" not in repr(raised.value.failure)


@pytest.mark.parametrize(
    ("speed", "native", "spoken", "stretch"),
    [
        (1.5, None, 1.0, 1.5),
        (1.0, None, 1.0, 1.0),
        (1.5, (0.5, 2.0), 1.5, 1.0),
        (4.0, (0.5, 2.0), 2.0, 2.0),
        (0.25, (0.5, 2.0), 0.5, 0.5),
    ],
)
def test_what_the_model_cannot_speak_fast_or_slow_is_stretched(
    speed: float, native: tuple[float, float] | None, spoken: float, stretch: float
) -> None:
    """WEIR-110: the model speaks as near to the wish as it can; the rest is stretching."""
    planned = plan(segment(speed=speed), CAPABILITIES, native)
    assert (planned.utterance.speed, planned.stretch) == (spoken, stretch)


@pytest.mark.parametrize(
    ("encoding", "wanted", "model", "rate"),
    [
        (AudioEncoding.PCM, 0, 24000, 24000),
        (AudioEncoding.PCM, 8000, 24000, 8000),
        (AudioEncoding.WAV, 0, 32000, 32000),
        (AudioEncoding.MULAW, 0, 24000, 8000),
        (AudioEncoding.MULAW, 16000, 24000, 16000),
        (AudioEncoding.OPUS, 0, 24000, 48000),
        (AudioEncoding.MP3, 0, 24000, 24000),
        (AudioEncoding.MP3, 0, 20000, 22050),
        (AudioEncoding.MP3, 0, 96000, 48000),
    ],
)
def test_the_answer_names_the_true_rate(
    encoding: AudioEncoding, wanted: int, model: int, rate: int
) -> None:
    """WEIR-185: a rate of 0 becomes the encoding's own, or one that the encoding has."""
    declared = replace(CAPABILITIES, sample_rate_hz=model)
    planned = plan(segment(encoding, rate_hz=wanted), declared, None)
    assert planned.output == AudioFormat(encoding, rate)
    assert planned.model_rate_hz == model
