"""Hypothesis strategies for the domain types of `contracts`.

Owns: what a valid value looks like, one strategy per type. Kept apart from the tests so that every
boundary is tried with the same values.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from contracts.capabilities import (
    LANGUAGE_CODES,
    VOICE_OPTIONS,
    SpeechCapabilities,
    TaskType,
    TextCommitmentCapabilities,
    Voice,
)
from contracts.identity import SegmentIdentity
from contracts.modality import (
    SAMPLE_RATES_HZ,
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    Outcome,
    SpeechUpdate,
    TextSpan,
    Usage,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import (
    INT64_MAX,
    INT64_MIN,
    MAX_SPEED,
    MIN_SPEED,
    SegmentRequest,
    SynthesisOptions,
    VoiceOptions,
)

UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
NAMES = st.text("ABCXYZabcxyz0189._-", min_size=1, max_size=128)
LANGUAGES = tuple(sorted(LANGUAGE_CODES.values()))


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return the values, or None."""
    return st.none() | values


identities = st.builds(
    SegmentIdentity,
    session_id=NAMES,
    request_id=NAMES,
    utterance_index=UINT64,
    segment_index=UINT64,
    attempt=st.integers(1, 2**32 - 1),
)

voice_options = st.builds(
    VoiceOptions,
    voice=TEXT,
    language=st.sampled_from(("Auto", *LANGUAGES)),
    task_type=st.sampled_from(TaskType),
    instructions=maybe(TEXT),
    reference_audio=maybe(st.binary(max_size=30)),
    reference_text=maybe(TEXT),
    x_vector_only=maybe(st.booleans()),
    speaker_embedding=st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=5
    ).map(tuple),
)

synthesis_options = st.builds(
    SynthesisOptions,
    speed=st.floats(MIN_SPEED, MAX_SPEED),
    seed=maybe(st.integers(INT64_MIN, INT64_MAX)),
    word_times=st.booleans(),
    max_new_tokens=maybe(st.integers(1, 2**32 - 1)),
    initial_codec_chunk_frames=maybe(st.integers(1, 2**32 - 1)),
    non_streaming_mode=maybe(st.booleans()),
)


@st.composite
def requested_formats(draw: st.DrawFn) -> AudioFormat:
    """Draw a format as a request may ask for it."""
    encoding = draw(st.sampled_from(AudioEncoding))
    rates = (0, 48000) if encoding is AudioEncoding.OPUS else (0, *SAMPLE_RATES_HZ)
    return AudioFormat(encoding, draw(st.sampled_from(rates)))


@st.composite
def segment_requests(draw: st.DrawFn) -> SegmentRequest:
    """Draw a request, with or without spans."""
    pieces = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=4))
    kinds = draw(st.sampled_from(("natural", "special", "of a newer profile")))
    spans = tuple(TextSpan(piece, kinds) for piece in pieces) if draw(st.booleans()) else ()
    return SegmentRequest(
        identity=draw(identities),
        text="".join(pieces),
        output=draw(requested_formats()),
        voice=draw(voice_options),
        options=draw(synthesis_options),
        spans=spans,
    )


word_times = st.builds(
    lambda word, start, length: WordTime(word, start, start + length),
    TEXT,
    st.integers(0, 2**31),
    st.integers(0, 2**31 - 1),
)

updates: st.SearchStrategy[SpeechUpdate] = st.one_of(
    st.builds(
        Accepted,
        st.builds(AudioFormat, st.sampled_from(AudioEncoding), st.integers(1, 2**32 - 1)),
        UINT32,
    ),
    st.builds(AudioChunk, UINT64, st.binary(min_size=1, max_size=30)),
    st.builds(AudioCompleted, UINT64, UINT64, UINT64),
    st.builds(WordTimes, st.lists(word_times, max_size=4).map(tuple)),
    st.builds(WordTimesCompleted, UINT64, st.booleans()),
    st.builds(Outcome, st.builds(Usage, UINT64, UINT64, UINT64, UINT64)),
)

_LANGUAGE_LISTS = st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=4, unique=True)


@st.composite
def commitments(draw: st.DrawFn) -> TextCommitmentCapabilities:
    """Draw one commitment record."""
    independent = draw(st.booleans())
    return TextCommitmentCapabilities(
        profile=draw(st.sampled_from(("zh_en_special_v1", "zh_en_special_v2"))),
        languages=tuple(draw(_LANGUAGE_LISTS)),
        independent_segments=independent,
        context_preservation=not independent,
        audio_streaming=draw(st.booleans()),
        word_timestamps=draw(st.booleans()),
        failed_segment_retries=draw(st.booleans()),
    )


@st.composite
def capabilities(draw: st.DrawFn) -> SpeechCapabilities:
    """Draw a record that is complete and consistent."""
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    tasks = draw(st.sets(st.sampled_from(TaskType)))
    record = SpeechCapabilities(
        model=draw(NAMES),
        sample_rate_hz=draw(st.sampled_from(SAMPLE_RATES_HZ)),
        languages=tuple(draw(_LANGUAGE_LISTS)),
        voices=tuple(Voice(name, tuple(draw(_LANGUAGE_LISTS)), draw(TEXT)) for name in names),
        default_voice=draw(st.sampled_from(names)),
        max_text_characters=draw(st.integers(1, 2**32 - 1)),
        task_types=tuple(sorted(tasks | {TaskType.CUSTOM_VOICE})),
        options=frozenset(draw(st.sets(st.sampled_from(VOICE_OPTIONS)))),
    )
    return replace(
        record,
        word_times=draw(st.booleans()),
        audio_streaming=draw(st.booleans()),
        text_commitment=tuple(draw(st.lists(commitments(), max_size=2))),
    )
