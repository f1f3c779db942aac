"""The order of updates: what a stream accepts, and that what it refuses changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.accumulation import (
    TRANSITIONS,
    AccumulationError,
    BatchCompletion,
    SegmentStream,
    State,
)
from contracts.identity import SegmentIdentity
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    IdentifiedUpdate,
    Outcome,
    SpeechUpdate,
    Usage,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest, SynthesisOptions
from tests.contracts import strategies

IDENTITY = SegmentIdentity("session", "request", 0, 0)
PCM = AudioFormat(AudioEncoding.PCM, 24000)
REQUEST = SegmentRequest(IDENTITY, "Hello.", AudioFormat(AudioEncoding.PCM, 0))
WITH_WORDS = replace(REQUEST, options=SynthesisOptions(word_times=True))

ACCEPTED = Accepted(PCM)
CHUNK_0, CHUNK_1 = AudioChunk(0, b"abcd"), AudioChunk(1, b"ef")
AUDIO_END = AudioCompleted(2, 6, 3)
WORDS = WordTimes((WordTime("Hello", 0, 5), WordTime(".", 5, 5)))
WORDS_END = WordTimesCompleted(2, True)
OUTCOME = Outcome(Usage(6, 1, 1, 0))
VALID: list[SpeechUpdate] = [ACCEPTED, CHUNK_0, CHUNK_1, AUDIO_END, OUTCOME]
KINDS = (Accepted, AudioChunk, WordTimes, AudioCompleted, WordTimesCompleted, Outcome)


def feed(stream: SegmentStream, *updates: SpeechUpdate) -> SegmentStream:
    """Give updates that answer the stream's request."""
    for update in updates:
        stream.receive(IdentifiedUpdate(IDENTITY, update))
    return stream


@pytest.mark.parametrize(
    "updates",
    [
        pytest.param(VALID, id="audio"),
        pytest.param([ACCEPTED, AudioCompleted(0, 0, 0), OUTCOME], id="text without a sound"),
    ],
)
def test_a_stream_completes_after_its_terminal_and_outcome(updates: list[SpeechUpdate]) -> None:
    """IO-INV-101: accepted, partial updates, the terminal, the outcome, the end."""
    stream = feed(SegmentStream(REQUEST), *updates)
    assert stream.completed
    stream.end()


@pytest.mark.parametrize(
    "updates",
    [
        pytest.param([CHUNK_0, CHUNK_1, AUDIO_END, WORDS, WORDS_END], id="words last"),
        pytest.param([WORDS, WORDS_END, CHUNK_0, CHUNK_1, AUDIO_END], id="words first"),
        pytest.param([CHUNK_0, WORDS, CHUNK_1, WORDS_END, AUDIO_END], id="in between"),
        pytest.param([AudioCompleted(0, 0, 0), WordTimesCompleted(0, True)], id="no sound"),
        pytest.param([CHUNK_0, CHUNK_1, AUDIO_END, WordTimesCompleted(0, False)], id="unaligned"),
    ],
)
def test_two_modalities_end_each_by_its_own_terminal_in_either_order(
    updates: list[SpeechUpdate],
) -> None:
    """IO-INV-101: the terminal of one says nothing about the other."""
    feed(SegmentStream(WITH_WORDS), ACCEPTED, *updates, OUTCOME).end()


@pytest.mark.parametrize(
    ("before", "refused"),
    [
        pytest.param([], CHUNK_0, id="audio before accepted"),
        pytest.param([], AUDIO_END, id="a terminal before accepted"),
        pytest.param([], OUTCOME, id="an outcome before accepted"),
        pytest.param([ACCEPTED], ACCEPTED, id="accepted twice"),
        pytest.param(VALID[:3], ACCEPTED, id="accepted again amid audio"),
        pytest.param(VALID[:4], CHUNK_0, id="a partial after the terminal"),
        pytest.param(VALID[:4], AUDIO_END, id="a second terminal"),
        pytest.param(VALID[:3], OUTCOME, id="an outcome before the terminal"),
        pytest.param([ACCEPTED], WORDS, id="words that nobody asked for"),
        pytest.param([ACCEPTED], WORDS_END, id="a terminal of words that nobody asked for"),
        pytest.param(VALID, CHUNK_0, id="audio after the outcome"),
        pytest.param(VALID, OUTCOME, id="a second outcome"),
        pytest.param([ACCEPTED], CHUNK_1, id="a first chunk that is not 0"),
        pytest.param([ACCEPTED, CHUNK_0], CHUNK_0, id="a chunk twice"),
        pytest.param([ACCEPTED, CHUNK_0], AudioChunk(2, b"ab"), id="a gap"),
        pytest.param([ACCEPTED], AudioChunk(0, b"abc"), id="a broken sample"),
        pytest.param(VALID[:3], AudioCompleted(1, 6, 3), id="other chunks counted"),
        pytest.param(VALID[:3], AudioCompleted(2, 5, 3), id="other bytes counted"),
        pytest.param(VALID[:3], AudioCompleted(2, 6, 4), id="other samples counted"),
        pytest.param([], Accepted(AudioFormat(AudioEncoding.WAV, 24000)), id="another encoding"),
        pytest.param([], Accepted(AudioFormat(AudioEncoding.PCM, 0)), id="no true rate"),
    ],
)
def test_an_update_out_of_order_is_refused_and_changes_nothing(
    before: list[SpeechUpdate], refused: SpeechUpdate
) -> None:
    """IO-INV-101, WEIR-120, WEIR-121, WEIR-122, WEIR-124: the stream is as it was, to the byte."""
    stream = feed(SegmentStream(REQUEST), *before)
    seen = _snapshot(stream)
    with pytest.raises(AccumulationError):
        feed(stream, refused)
    assert _snapshot(stream) == seen
    feed(stream, *VALID[len(before) :])  # what was due may still come
    stream.end()


@pytest.mark.parametrize(
    "refused",
    [WordTimesCompleted(1, True), WordTimesCompleted(3, True), WordTimesCompleted(2, False)],
)
def test_a_words_terminal_counts_what_came(refused: WordTimesCompleted) -> None:
    """WEIR-121: also that words without an alignment are none."""
    stream = feed(SegmentStream(WITH_WORDS), ACCEPTED, WORDS)
    with pytest.raises(AccumulationError):
        feed(stream, refused)
    feed(stream, WORDS_END, CHUNK_0, CHUNK_1, AUDIO_END, OUTCOME).end()


def test_word_times_accumulate_over_several_updates() -> None:
    """IO-INV-101: partial updates of one modality add up until its terminal."""
    stream = feed(SegmentStream(WITH_WORDS), ACCEPTED, WORDS, WORDS, WordTimes(()))
    feed(stream, WordTimesCompleted(4, True), CHUNK_0, CHUNK_1, AUDIO_END, OUTCOME).end()


@pytest.mark.parametrize(
    "foreign",
    [
        replace(IDENTITY, session_id="other"),
        replace(IDENTITY, request_id="other"),
        replace(IDENTITY, utterance_index=1),
        replace(IDENTITY, segment_index=1),
        IDENTITY.next_attempt(),
    ],
)
def test_an_update_of_a_foreign_identity_is_refused(foreign: SegmentIdentity) -> None:
    """IO-INV-100: another request, or another attempt of the same."""
    stream = feed(SegmentStream(REQUEST), ACCEPTED)
    with pytest.raises(AccumulationError):
        stream.receive(IdentifiedUpdate(foreign, CHUNK_0))
    feed(stream, *VALID[1:]).end()


@pytest.mark.parametrize("given", range(len(VALID)))
def test_an_end_without_an_outcome_is_refused(given: int) -> None:
    """IO-INV-101: a stream that stops is not a stream that completes."""
    stream = feed(SegmentStream(REQUEST), *VALID[:given])
    with pytest.raises(AccumulationError):
        stream.end()


def test_a_requested_rate_is_the_accepted_one() -> None:
    """WEIR-124: a rate of 0 leaves the choice to the backend, any other does not."""
    asked = replace(REQUEST, output=AudioFormat(AudioEncoding.PCM, 16000))
    with pytest.raises(AccumulationError):
        feed(SegmentStream(asked), ACCEPTED)
    accepted = Accepted(AudioFormat(AudioEncoding.PCM, 16000))
    assert feed(SegmentStream(asked), accepted).format == accepted.format


@pytest.mark.parametrize("encoding", [e for e in AudioEncoding if not e.raw])
def test_files_may_be_cut_anywhere(encoding: AudioEncoding) -> None:
    """WEIR-121: only raw bytes are whole samples; a file's bytes say nothing about its samples."""
    rate = 48000 if encoding is AudioEncoding.OPUS else 24000
    stream = SegmentStream(replace(REQUEST, output=AudioFormat(encoding, 0)))
    feed(stream, Accepted(AudioFormat(encoding, rate)), AudioChunk(0, b"abc"))
    feed(stream, AudioCompleted(1, 3, 777), OUTCOME).end()


def test_mulaw_has_one_byte_for_each_sample() -> None:
    """WEIR-121: raw, but never broken."""
    stream = SegmentStream(replace(REQUEST, output=AudioFormat(AudioEncoding.MULAW, 0)))
    feed(stream, Accepted(AudioFormat(AudioEncoding.MULAW, 8000)), AudioChunk(0, b"abc"))
    with pytest.raises(AccumulationError):
        feed(stream, AudioCompleted(1, 3, 2))
    feed(stream, AudioCompleted(1, 3, 3), OUTCOME).end()


def test_the_table_has_a_row_for_every_state_and_leads_to_known_states() -> None:
    """IO-INV-101: every state but the last has a way on, and only partial updates stay."""
    assert set(TRANSITIONS) == set(State)
    for state, row in TRANSITIONS.items():
        assert set(row) <= set(KINDS)
        assert bool(row) is (state is not State.COMPLETED)
        for kind, following in row.items():
            assert (following is state) is (kind in (AudioChunk, WordTimes))


def _snapshot(stream: SegmentStream) -> tuple[object, ...]:
    return tuple(getattr(stream, name) for name in SegmentStream.__slots__)


class Model:
    """What a valid stream is, said another way: a list of all that came."""

    def __init__(self, words: bool) -> None:
        self.words = words
        self.past: list[SpeechUpdate] = []

    def allows(self, update: SpeechUpdate) -> bool:
        """Tell whether `update` may follow what came before."""
        kinds = [type(past) for past in self.past]
        open_audio = Accepted in kinds and AudioCompleted not in kinds
        open_words = self.words and Accepted in kinds and WordTimesCompleted not in kinds
        chunks = [past.data for past in self.past if isinstance(past, AudioChunk)]
        words = sum(len(past.words) for past in self.past if isinstance(past, WordTimes))
        size = sum(map(len, chunks))
        match update:
            case Accepted(format):
                known = format.encoding is AudioEncoding.PCM and format.sample_rate_hz > 0
                return not kinds and known
            case AudioChunk(index, data):
                return open_audio and index == len(chunks) and len(data) % 2 == 0
            case AudioCompleted(count, total, samples):
                return open_audio and (count, total, samples * 2) == (len(chunks), size, size)
            case WordTimes():
                return open_words
            case WordTimesCompleted(count, aligned):
                return open_words and count == words and (aligned or not words)
            case Outcome():
                ended = AudioCompleted in kinds and (not self.words or WordTimesCompleted in kinds)
                return ended and Outcome not in kinds


SMALL = st.integers(0, 2)
NEAR_VALID: st.SearchStrategy[SpeechUpdate] = st.one_of(
    st.just(ACCEPTED),
    st.builds(AudioChunk, SMALL, st.sampled_from((b"ab", b"abcd", b"abc"))),
    st.builds(lambda c, b: AudioCompleted(c, b * 2, b), SMALL, SMALL),
    st.builds(WordTimes, st.sampled_from(((), WORDS.words))),
    st.builds(WordTimesCompleted, SMALL, st.booleans()),
    st.just(OUTCOME),
    strategies.updates,
)


@given(st.booleans(), st.lists(NEAR_VALID, max_size=25))
def test_any_sequence_is_taken_exactly_as_far_as_the_rules_allow(
    words: bool, sequence: list[SpeechUpdate]
) -> None:
    """IO-INV-101, WEIR-120, WEIR-121, WEIR-122: the table agrees with the rules said otherwise."""
    stream, model = SegmentStream(WITH_WORDS if words else REQUEST), Model(words)
    for update in sequence:
        allowed, before = model.allows(update), _snapshot(stream)
        try:
            stream.receive(IdentifiedUpdate(IDENTITY, update))
        except AccumulationError:
            assert not allowed, update
            assert _snapshot(stream) == before
        else:
            assert allowed, update
            model.past.append(update)
    assert stream.completed is (Outcome in [type(past) for past in model.past])


OTHER = replace(REQUEST, identity=replace(IDENTITY, request_id="other"))


def give(batch: BatchCompletion, request: SegmentRequest, *updates: SpeechUpdate) -> None:
    """Give updates that answer one member of a batch."""
    for update in updates:
        batch.receive(IdentifiedUpdate(request.identity, update))


def test_members_of_a_batch_complete_one_by_one() -> None:
    """WEIR-123: interleaved as they like, each by its own terminals and outcome."""
    batch = BatchCompletion([REQUEST, OTHER])
    give(batch, REQUEST, ACCEPTED, CHUNK_0)
    give(batch, OTHER, ACCEPTED, AudioCompleted(0, 0, 0), OUTCOME)
    assert batch.pending == (IDENTITY,)
    with pytest.raises(AccumulationError):
        batch.end()
    give(batch, REQUEST, CHUNK_1, AUDIO_END, OUTCOME)
    assert not batch.pending
    batch.end()


def test_a_member_that_fails_leaves_the_others_as_they_are() -> None:
    """WEIR-123: a failure is the terminal state of one member, and it gives nothing more."""
    batch = BatchCompletion([REQUEST, OTHER])
    give(batch, REQUEST, ACCEPTED)
    batch.fail(IDENTITY)
    with pytest.raises(AccumulationError):
        give(batch, REQUEST, CHUNK_0)
    with pytest.raises(AccumulationError):
        batch.fail(IDENTITY)
    give(batch, OTHER, *VALID)
    with pytest.raises(AccumulationError):
        batch.fail(OTHER.identity)
    batch.end()


def test_a_terminal_of_one_member_is_no_terminal_of_another() -> None:
    """IO-INV-101: counts and terminals are kept apart."""
    batch = BatchCompletion([REQUEST, OTHER])
    give(batch, REQUEST, *VALID[:4])
    give(batch, OTHER, ACCEPTED)
    with pytest.raises(AccumulationError):
        give(batch, OTHER, OUTCOME)
    with pytest.raises(AccumulationError):
        give(batch, OTHER, AUDIO_END)
    assert batch.pending == (IDENTITY, OTHER.identity)


def test_a_batch_refuses_strangers_twins_and_emptiness() -> None:
    """IO-INV-100: an update is for exactly one member."""
    batch = BatchCompletion([REQUEST])
    with pytest.raises(AccumulationError):
        give(batch, OTHER, ACCEPTED)
    with pytest.raises(AccumulationError):
        batch.fail(OTHER.identity)
    twin = replace(REQUEST, identity=IDENTITY.next_attempt())
    for members in ([REQUEST, REQUEST], [REQUEST, twin], []):
        with pytest.raises(ValueError, match="batch"):
            BatchCompletion(members)
