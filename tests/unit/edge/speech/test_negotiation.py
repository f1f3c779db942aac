"""A configuration held against what the deployment can do."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from contracts.capabilities import (
    SpeechCapabilities,
    TaskType,
    TextCommitmentCapabilities,
    Voice,
)
from contracts.errors import Failure, Reason
from contracts.modality import AudioEncoding, AudioFormat
from services.edge.speech.messages import SessionConfig
from services.edge.speech.negotiation import Agreement, NegotiationPolicy, negotiate
from tests.unit.edge.speech.session_fixture import POLICY, PROFILE, STANDARD

STRICT = replace(POLICY, strict=True)
CAPABLE = replace(
    STANDARD,
    task_types=(TaskType.CUSTOM_VOICE, TaskType.BASE),
    options=frozenset(
        {
            "instructions",
            "reference_audio",
            "reference_text",
            "x_vector_only",
            "speaker_embedding",
            "max_new_tokens",
            "initial_codec_chunk_frames",
            "non_streaming_mode",
        }
    ),
)
RECORD = STANDARD.text_commitment[0]
COMMIT: dict[str, Any] = {"text_input_mode": "commitment", "language": "English"}
STREAM: dict[str, Any] = {"response_format": "pcm", "stream_audio": True}
SOUND = "data:audio/wav;base64," + base64.b64encode(b"RIFF").decode()


def config(**fields: Any) -> SessionConfig:
    return msgspec.convert({"type": "session.config", **fields}, SessionConfig)


def agree(
    capabilities: SpeechCapabilities = STANDARD, policy: NegotiationPolicy = POLICY, **fields: Any
) -> Agreement:
    agreement = negotiate(config(**fields), capabilities, policy)
    assert isinstance(agreement, Agreement), agreement
    return agreement


def refuse(
    capabilities: SpeechCapabilities = STANDARD, policy: NegotiationPolicy = POLICY, **fields: Any
) -> Failure:
    refusal = negotiate(config(**fields), capabilities, policy)
    assert isinstance(refusal, Failure), refusal
    assert refusal.reason is Reason.UNSUPPORTED_OPTION
    return refusal


def test_defaults_hold_for_an_empty_configuration() -> None:
    """WEIR-140: wav, buffered, whole, Auto, the voice left to the model, no warning."""
    agreement = agree()
    assert agreement.output == AudioFormat(AudioEncoding.WAV, 0)
    assert agreement.commitment is None
    assert agreement.split_granularity == "none"
    assert (agreement.language, agreement.voice.voice) == ("Auto", "")
    assert agreement.voice.task_type is TaskType.CUSTOM_VOICE
    assert not agreement.stream_audio
    assert agreement.options.speed == 1.0
    assert agreement.warnings == ()


def test_null_is_the_default_everywhere() -> None:
    """WEIR-140: every field may be null, and means the same as if it were absent."""
    nulls: dict[str, Any] = dict.fromkeys(SessionConfig.__struct_fields__)
    assert agree(**nulls) == agree()
    assert agree(**nulls).warnings == ()


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("Auto", "Auto"),
        ("auto", "Auto"),
        ("English", "English"),
        ("ENGLISH", "English"),
        ("en", "English"),
        ("ZH", "Chinese"),
        (" chinese ", "Chinese"),
    ],
)
def test_a_language_goes_by_name_or_code(asked: str, known: str) -> None:
    """WEIR-140: English name or ISO 639-1 code, whatever the case."""
    assert agree(language=asked).language == known


@pytest.mark.parametrize("asked", ["German", "de", "Klingon", "e"])
def test_a_language_that_is_not_spoken_is_refused(asked: str) -> None:
    """WEIR-140: no other language stands in, and the ones that are spoken are named."""
    assert "English, Chinese" in refuse(language=asked).message


@pytest.mark.parametrize(
    ("encoding", "asked", "rate"),
    [
        ("wav", None, 0),
        ("wav", 8000, 8000),
        ("pcm", None, 0),
        ("pcm", 44100, 44100),
        ("mulaw", None, 8000),
        ("mulaw", 16000, 16000),
        ("opus", None, 48000),
        ("opus", 48000, 48000),
        ("mp3", None, 0),
        ("flac", 22050, 22050),
    ],
)
def test_the_rate_of_a_format(encoding: str, asked: int | None, rate: int) -> None:
    """WEIR-140: mulaw is 8000, opus is 48000, the rest is the model's own unless asked for."""
    agreement = agree(response_format=encoding, sample_rate=asked)
    assert agreement.output == AudioFormat(AudioEncoding(encoding), rate)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("opus has one rate", {"response_format": "opus", "sample_rate": 24000}, "48000"),
    ("streaming needs raw audio", {"stream_audio": True}, "pcm or mulaw"),
    ("as does a file format", {"stream_audio": True, "response_format": "mp3"}, "pcm or mulaw"),
    ("streaming needs plain speed", {**STREAM, "speed": 1.5}, "speed of 1.0"),
    ("word times need streaming", {"word_timestamps": True}, "stream_audio"),
    ("task type", {"task_type": "VoiceDesign"}, "CustomVoice"),
    ("instructions", {"instructions": "softly"}, "instructions"),
    ("ref_audio", {"ref_audio": SOUND}, "ref_audio"),
    ("ref_text", {"ref_text": "hello"}, "ref_text"),
    ("x_vector_only_mode", {"x_vector_only_mode": True}, "x_vector_only_mode"),
    ("speaker_embedding", {"speaker_embedding": [0.5]}, "speaker_embedding"),
    ("commitment needs a language", {"text_input_mode": "commitment"}, "Chinese, English"),
    ("and Auto is none", {**COMMIT, "language": "Auto"}, "Chinese, English"),
    ("commitment never splits", {**COMMIT, "split_granularity": "clause"}, "none"),
    ("an unknown profile", {**COMMIT, "commitment_profile": "other"}, PROFILE),
]


@pytest.mark.parametrize(("fields", "sentence"), [row[1:] for row in REFUSED])
def test_a_combination_that_nobody_declared_is_refused(
    fields: dict[str, Any], sentence: str
) -> None:
    """WEIR-140: before any work, with what would be allowed."""
    assert sentence in refuse(**fields).message


@pytest.mark.parametrize(
    "fields",
    [
        {**STREAM},
        {"response_format": "mulaw", "stream_audio": True},
        {**STREAM, "speed": 1.0},
        {"speed": 4.0},
        {**STREAM, "word_timestamps": True},
        {"x_vector_only_mode": False},
        {"speaker_embedding": []},
        {"instructions": ""},
        {**COMMIT, **STREAM, "word_timestamps": True},
        {**COMMIT, "split_granularity": "none"},
        {**COMMIT, "language": "zh", "commitment_profile": PROFILE},
    ],
)
def test_a_combination_that_is_declared_is_taken(fields: dict[str, Any]) -> None:
    """WEIR-140: the other direction, without a warning."""
    assert agree(**fields).warnings == ()


def test_declared_options_reach_the_request() -> None:
    """WEIR-141: what an adapter declares is passed on as it was asked for."""
    agreement = agree(
        CAPABLE,
        task_type="Base",
        instructions="softly",
        ref_audio=SOUND,
        ref_text="hello",
        x_vector_only_mode=True,
        speaker_embedding=[0.5, 1],
        max_new_tokens=7,
        initial_codec_chunk_frames=3,
        non_streaming_mode=True,
        seed=-1,
        speed=0.5,
    )
    voice, options = agreement.voice, agreement.options
    assert (voice.task_type, voice.instructions) == (TaskType.BASE, "softly")
    assert (voice.reference_audio, voice.reference_text) == (b"RIFF", "hello")
    assert (voice.x_vector_only, voice.speaker_embedding) == (True, (0.5, 1.0))
    assert (options.max_new_tokens, options.initial_codec_chunk_frames) == (7, 3)
    assert (options.non_streaming_mode, options.seed, options.speed) == (True, -1, 0.5)
    assert agreement.warnings == ()


@pytest.mark.parametrize(
    "url",
    [
        "http://host/a.wav",
        "file:///etc/passwd",
        "data:text/plain;base64,QQ==",
        "QQ==",
        "data:audio",
        "data:audio/wav,QQ==",
        "data:audio/wav;base64,?",
        "data:audio/wav;base64,QQ",
    ],
)
def test_reference_audio_is_never_fetched(url: str) -> None:
    """WEIR-140: only the bytes of a data: URL count, and they are whole."""
    assert "ref_audio" in refuse(CAPABLE, ref_audio=url).message


WARNED: list[tuple[dict[str, Any], str]] = [
    ({"model": "other"}, "model is not served; tone is used"),
    ({"voice": "Nobody"}, "voice is unknown; the default voice speaks"),
    ({"speaker": "Nobody"}, "voice is unknown; the default voice speaks"),
    ({"voice": "Lin", "speaker": "Ada"}, "speaker is ignored, since voice is given"),
    ({"max_new_tokens": 1}, "max_new_tokens is ignored: the model does not read it"),
    (
        {"initial_codec_chunk_frames": 1},
        "initial_codec_chunk_frames is ignored: the model does not read it",
    ),
    (
        {"non_streaming_mode": False},
        "non_streaming_mode is ignored: the model does not read it",
    ),
    ({"commitment_profile": "x"}, "commitment_profile is ignored in buffered mode"),
    (
        {"events": ["text.pending"]},
        "the extra messages named in events are not offered; none is sent",
    ),
]


@pytest.mark.parametrize(("fields", "warning"), WARNED)
def test_what_does_not_count_is_named(fields: dict[str, Any], warning: str) -> None:
    """WEIR-141: nothing the client asked for is dropped in silence."""
    assert agree(**fields).warnings == (warning,)


@pytest.mark.parametrize(
    ("fields", "voice"),
    [
        ({"voice": "lin"}, "Lin"),
        ({"speaker": "LIN"}, "Lin"),
        ({"voice": "Lin"}, "Lin"),
        ({"voice": "Lin", "speaker": "Ada"}, "Lin"),
        ({"voice": "", "speaker": "Lin"}, "Lin"),
        ({"voice": "Lin", "speaker": "Lin"}, "Lin"),
        ({"model": "tone"}, ""),
    ],
)
def test_a_voice_goes_by_either_name(fields: dict[str, Any], voice: str) -> None:
    """WEIR-140: `speaker` is another name of `voice`, which wins."""
    assert agree(**fields).voice.voice == voice


def test_a_voice_speaks_its_own_languages_only() -> None:
    """WEIR-141: for another language the model chooses, and the client is told."""
    declared = replace(STANDARD, voices=(Voice("Ada", ("English",)), Voice("Lin", ("Chinese",))))
    assert agree(declared, voice="Ada", language="zh").voice.voice == ""
    warning = "voice does not speak Chinese; the default voice speaks"
    assert agree(declared, voice="Ada", language="zh").warnings == (warning,)
    assert agree(declared, voice="Lin", language="zh").voice.voice == "Lin"
    assert agree(declared, voice="Ada").voice.voice == "Ada"
    refusal = refuse(declared, STRICT, voice="Ada", language="zh")
    assert refusal.message == "The voice must be one that speaks Chinese: Lin."


@pytest.mark.parametrize("fields", [{"model": "other"}, {"voice": "Nobody"}])
def test_the_operator_may_be_strict(fields: dict[str, Any]) -> None:
    """WEIR-141: what is a warning elsewhere is an error then."""
    refuse(policy=STRICT, **fields)


def test_a_strict_operator_takes_what_is_served() -> None:
    """WEIR-141: strictness refuses names, not sessions."""
    assert agree(policy=STRICT, model="tone", voice="Ada").warnings == ()


def declaring(*records: TextCommitmentCapabilities) -> SpeechCapabilities:
    return replace(STANDARD, text_commitment=records)


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ((), f"does not support commitment with {PROFILE}"),
        ((replace(RECORD, profile="other"),), f"does not support commitment with {PROFILE}"),
        ((replace(RECORD, languages=("Chinese",)),), "one of Chinese"),
        (
            (replace(RECORD, independent_segments=False, context_preservation=True),),
            "context between segments",
        ),
    ],
)
def test_commitment_needs_its_declaration(
    records: tuple[TextCommitmentCapabilities, ...], sentence: str
) -> None:
    """IO-INV-102: profile and language are declared, and segments are independent."""
    assert sentence in refuse(declaring(*records), **COMMIT).message


def test_a_profile_may_declare_auto() -> None:
    """WEIR-140: which languages commit is the record's to say."""
    capabilities = declaring(replace(RECORD, languages=("Auto",)))
    assert agree(capabilities, text_input_mode="commitment").language == "Auto"


def test_the_first_declared_record_counts() -> None:
    """IO-INV-102: the order of the declaration is the order of choice."""
    silent = replace(RECORD, audio_streaming=False)
    assert agree(declaring(RECORD, silent), **COMMIT).commitment is RECORD
    assert agree(declaring(silent, RECORD), **COMMIT).commitment is silent


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (replace(RECORD, audio_streaming=False), STREAM),
        (replace(RECORD, word_timestamps=False), {**STREAM, "word_timestamps": True}),
    ],
)
def test_the_record_says_what_committed_segments_can_do(
    record: TextCommitmentCapabilities, fields: dict[str, Any]
) -> None:
    """WEIR-140: a combination counts only as it was declared; buffered mode may still do it."""
    refuse(declaring(record), **COMMIT, **fields)
    assert agree(declaring(record), **fields).stream_audio


def test_word_times_need_a_model_that_aligns() -> None:
    """WEIR-140: refused where nobody can align."""
    refuse(replace(STANDARD, word_times=False), **STREAM, word_timestamps=True)


@pytest.mark.parametrize(("declared", "fields"), [(True, COMMIT), (False, COMMIT), (True, {})])
def test_retries_after_acceptance_are_declared(declared: bool, fields: dict[str, Any]) -> None:
    """IO-INV-102: only an adapter that says so may be asked again, and only for commitment."""
    capabilities = declaring(replace(RECORD, failed_segment_retries=declared))
    expected = declared and fields is COMMIT
    assert agree(capabilities, **fields).retries_after_acceptance is expected
