"""The life of a segment, with an adapter whose every step is written here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from contracts.errors import GrpcCode, Reason, WeirError, failure
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    Outcome,
    SpeechUpdate,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest
from services.runtime.metrics import Metrics
from services.tts.adapters.base import AudioStep, Samples, Step, Utterance, Word, WordTimesStep
from services.tts.engine import Engine, Synthesis
from tests.unit.tts.support import (
    CAPABILITIES,
    ScriptedAdapter,
    make_engine,
    sample_of,
    segment,
    sine,
    steps_of,
)

TIMEOUT_S = 10.0
BLOCK = sine(0.1)


@asynccontextmanager
async def _engine(
    adapter: ScriptedAdapter, metrics: Metrics | None = None, **settings: float
) -> AsyncIterator[Engine]:
    """An engine whose threads have all left the adapter at the end: nothing may hold one up."""
    engine = make_engine(adapter, metrics, **settings)
    try:
        yield engine
        async with asyncio.timeout(TIMEOUT_S):
            await engine.admission.empty()
    finally:
        engine.close()
        await asyncio.to_thread(engine.workers.shutdown)


@asynccontextmanager
async def _begun(
    engine: Engine, request: SegmentRequest
) -> AsyncIterator[tuple[Synthesis, AsyncIterator[SpeechUpdate]]]:
    synthesis = engine.begin(request)
    try:
        async with aclosing(synthesis.updates()) as updates:
            yield synthesis, updates
    finally:
        synthesis.cancel()


async def _collect(updates: AsyncIterator[SpeechUpdate], into: list[SpeechUpdate]) -> None:
    async for update in updates:
        into.append(update)  # noqa: PERF401  # what came before a failure is kept as well


async def _speak(engine: Engine, request: SegmentRequest) -> list[SpeechUpdate]:
    async with _begun(engine, request) as (synthesis, updates):
        return [synthesis.accepted, *[update async for update in updates]]


async def test_the_updates_come_in_their_order_with_counts_that_agree() -> None:
    """IO-INV-101: accepted, audio, its terminal, word times, their terminal, outcome."""

    def script(_: Utterance) -> Iterator[Step]:
        yield AudioStep(sine(0.15))
        yield WordTimesStep((Word("some", 0.0, 0.1), Word("words", 0.1, 9.0)))
        yield AudioStep(sine(0.05))

    async with _engine(ScriptedAdapter(script)) as engine:
        updates = await _speak(engine, segment(word_times=True))
    chunks = [update for update in updates if isinstance(update, AudioChunk)]
    assert [type(update) for update in updates] == [
        Accepted,
        *[AudioChunk] * 3,
        AudioCompleted,
        WordTimes,
        WordTimesCompleted,
        Outcome,
    ]
    assert updates[0] == Accepted(AudioFormat(AudioEncoding.PCM, 24000), 0)
    assert [chunk.chunk_index for chunk in chunks] == [0, 1, 2]
    assert [len(chunk.data) for chunk in chunks] == [4800, 2400, 2400]
    assert updates[4:7] == [
        AudioCompleted(3, 9600, 4800),
        WordTimes((WordTime("some", 0, 100), WordTime("words", 100, 200))),
        WordTimesCompleted(2, aligned=True),
    ]
    assert isinstance(updates[7], Outcome)
    assert (updates[7].usage.input_characters, updates[7].usage.output_audio_ms) == (10, 200)


WORDS: list[tuple[str, WordTimesStep | None, WordTimesCompleted]] = [
    ("silence", WordTimesStep(()), WordTimesCompleted(0, aligned=True)),
    ("the aligner failed", WordTimesStep(None), WordTimesCompleted(0, aligned=False)),
    ("no step at all", None, WordTimesCompleted(0, aligned=False)),
    (
        "times that are no numbers",
        WordTimesStep((Word("some", float("nan"), 1.0),)),
        WordTimesCompleted(0, aligned=False),
    ),
    (
        "more words than characters",
        WordTimesStep((Word("w", 0.0, 0.0),) * 11),
        WordTimesCompleted(0, aligned=False),
    ),
]


@pytest.mark.parametrize(("name", "words", "terminal"), WORDS, ids=[row[0] for row in WORDS])
async def test_without_words_the_audio_is_good_all_the_same(
    name: str, words: WordTimesStep | None, terminal: WordTimesCompleted
) -> None:
    """WEIR-189: a terminal tells silence from an aligner that failed, and no partial comes."""
    steps: list[Step] = [AudioStep(BLOCK), *([words] if words else [])]
    async with _engine(ScriptedAdapter(lambda _: iter(steps))) as engine:
        updates = await _speak(engine, segment(word_times=True))
    assert [update for update in updates if isinstance(update, WordTimesCompleted)] == [terminal]
    assert not [update for update in updates if isinstance(update, WordTimes)]
    assert isinstance(updates[-1], Outcome)


async def test_words_that_nobody_asked_for_are_not_sent() -> None:
    """IO-INV-101: a modality that was not asked for has neither partials nor a terminal."""
    steps: list[Step] = [AudioStep(BLOCK), WordTimesStep((Word("some", 0.0, 0.1),))]
    async with _engine(ScriptedAdapter(lambda _: iter(steps))) as engine:
        updates = await _speak(engine, segment())
    assert [type(u) for u in updates] == [Accepted, AudioChunk, AudioCompleted, Outcome]


async def test_text_without_sound_is_a_success_without_chunks() -> None:
    """IO-INV-101: no audio has its terminal, too."""
    async with _engine(ScriptedAdapter(steps_of())) as engine:
        updates = await _speak(engine, segment(text=" !"))
    assert updates[1] == AudioCompleted(0, 0, 0)
    assert isinstance(updates[-1], Outcome)


async def test_the_first_chunk_leaves_before_the_second_step_is_made() -> None:
    """WEIR-193: nothing waits for the rest of the segment."""
    release = threading.Event()

    def script(_: Utterance) -> Iterator[Step]:
        yield AudioStep(BLOCK)
        assert release.wait(TIMEOUT_S)
        yield AudioStep(BLOCK)

    async with (
        _engine(ScriptedAdapter(script)) as engine,
        asyncio.timeout(TIMEOUT_S),
        _begun(engine, segment()) as (_, updates),
    ):
        assert isinstance(await anext(updates), AudioChunk)
        release.set()
        assert [type(u) async for u in updates] == [AudioChunk, AudioCompleted, Outcome]


async def test_the_adapter_runs_off_the_event_loop_on_one_thread() -> None:
    """WEIR-194: opened, advanced and closed on one and the same thread, which is not the loop's."""
    adapter = ScriptedAdapter(steps_of(BLOCK, BLOCK, BLOCK))
    async with _engine(adapter) as engine:
        await _speak(engine, segment())
    assert len(set(adapter.threads)) == 1
    assert threading.get_ident() not in adapter.threads


@pytest.mark.parametrize("handover", [1, 4])
async def test_a_reader_that_never_reads_stops_the_adapter_after_the_bound(handover: int) -> None:
    """WEIR-193: one chunk was read, `handover` wait, one is at the door; then nothing is made."""

    def script(_: Utterance) -> Iterator[Step]:
        for _step in range(1000):
            yield AudioStep(BLOCK)

    adapter = ScriptedAdapter(script)
    async with _engine(adapter, handover_chunks=handover) as engine:
        async with _begun(engine, segment()) as (_, updates):
            await anext(updates)
            bound = 1 + handover + 1
            assert await asyncio.to_thread(adapter.wait_for_steps, bound, TIMEOUT_S)
            assert not await asyncio.to_thread(adapter.wait_for_steps, bound + 1, 0.1)
            # The loop is free all the while, and each chunk that is read lets one more be made.
            await anext(updates)
            assert await asyncio.to_thread(adapter.wait_for_steps, bound + 1, TIMEOUT_S)
        assert await asyncio.to_thread(adapter.closed.wait, TIMEOUT_S)
    assert adapter.steps <= bound + 2


async def test_a_cancelled_segment_stops_after_the_step_it_is_in() -> None:
    """WEIR-194, WEIR-190: no further step; the slot is free once the thread has left, no sooner."""
    inside, go_on = threading.Event(), threading.Event()
    metrics = Metrics("tts")

    def script(_: Utterance) -> Iterator[Step]:
        yield AudioStep(BLOCK)
        inside.set()
        assert go_on.wait(TIMEOUT_S)
        yield AudioStep(sine(0.5))
        yield AudioStep(BLOCK)

    adapter = ScriptedAdapter(script)
    async with (
        _engine(adapter, metrics) as engine,
        _begun(engine, segment()) as (synthesis, updates),
    ):
        await anext(updates)
        assert await asyncio.to_thread(inside.wait, TIMEOUT_S)
        synthesis.cancel()
        assert engine.admission.busy == 1
        assert not adapter.closed.is_set()
        go_on.set()
        async with asyncio.timeout(TIMEOUT_S):
            await synthesis.left()
        assert adapter.closed.is_set()
        assert engine.admission.busy == 0
    assert adapter.steps == 2
    assert len(set(adapter.threads)) == 1
    assert sample_of(metrics, "wasted_audio_seconds_total") == pytest.approx(0.5)
    assert sample_of(metrics, "cancel_latency_seconds_count") == 1


async def test_a_segment_that_is_cancelled_in_the_queue_never_reaches_the_adapter() -> None:
    """WEIR-190: its place is free at once, and its turn goes to the next."""
    go_on = threading.Event()

    def script(utterance: Utterance) -> Iterator[Step]:
        texts.append(utterance.text)
        assert go_on.wait(TIMEOUT_S)
        yield AudioStep(BLOCK)

    texts: list[str] = []
    async with _engine(ScriptedAdapter(script), queue=2) as engine:
        first = asyncio.create_task(_speak(engine, segment(text="first")))
        await asyncio.sleep(0)
        second = asyncio.create_task(_speak(engine, segment(text="second")))
        await asyncio.sleep(0)
        third = asyncio.create_task(_speak(engine, segment(text="third")))
        await asyncio.sleep(0)
        assert engine.admission.queued == 2
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert engine.admission.queued == 1
        go_on.set()
        updates = [await first, await third]
    assert texts == ["first", "third"]
    assert [u[0].queue_position for u in updates if isinstance(u[0], Accepted)] == [0, 2]


async def test_a_slot_is_free_when_the_outcome_arrives() -> None:
    """WEIR-190: who speaks one segment after the other never needs the queue."""
    async with _engine(ScriptedAdapter(steps_of(BLOCK)), queue=0) as engine:
        for _ in range(100):
            async with _begun(engine, segment()) as (_, updates):
                busy = [engine.admission.busy async for u in updates if isinstance(u, Outcome)]
                assert busy == [0]


async def test_as_many_segments_are_spoken_at_once_as_the_adapter_allows() -> None:
    """WEIR-190: all slots work in parallel, and never one more."""
    together = threading.Barrier(3)

    def script(_: Utterance) -> Iterator[Step]:
        together.wait(TIMEOUT_S)
        yield AudioStep(BLOCK)

    async with _engine(ScriptedAdapter(script, concurrency=3)) as engine:
        requests = [segment(session_id=f"s{number}") for number in range(9)]
        updates = await asyncio.gather(*(_speak(engine, request) for request in requests))
    assert all(isinstance(of_one[-1], Outcome) for of_one in updates)


def _raises(error: BaseException, *, after: int) -> Iterator[Step]:
    for _ in range(after):
        yield AudioStep(BLOCK)
    raise error


def _foreign(step: object) -> Iterator[Step]:
    yield cast(Step, step)


class Unopenable(ScriptedAdapter):
    """Fails before there is an iterator."""

    def synthesize(self, utterance: Utterance) -> Iterator[Step]:
        """Raise at once."""
        raise RuntimeError(utterance.text)


def _not_finite() -> Samples:
    return np.array([0.0, np.nan], np.float32)


FAILING: list[tuple[str, ScriptedAdapter, int]] = [
    ("at once", Unopenable(steps_of()), 0),
    ("before the first step", ScriptedAdapter(lambda u: _raises(KeyError(u.text), after=0)), 0),
    ("in mid-segment", ScriptedAdapter(lambda u: _raises(ValueError(u.text), after=2)), 2),
    ("a foreign step", ScriptedAdapter(lambda u: _foreign(u.text)), 0),
    ("no step", ScriptedAdapter(lambda _: _foreign(None)), 0),
    ("not a number", ScriptedAdapter(steps_of(BLOCK, _not_finite())), 1),
    ("words twice", ScriptedAdapter(lambda _: iter([WordTimesStep(None)] * 2)), 0),
]


@pytest.mark.parametrize(("name", "adapter", "chunks"), FAILING, ids=[row[0] for row in FAILING])
async def test_a_model_that_fails_fails_its_segment_and_nothing_else(
    name: str, adapter: ScriptedAdapter, chunks: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """WEIR-194, WEIR-201: what was made arrives, then SEGMENT_FAILED; the text goes nowhere."""
    async with _engine(adapter, queue=0) as engine:
        for _ in range(2):  # The slot is free again, whatever happened.
            async with _begun(engine, segment(text="the secret")) as (_, updates):
                seen: list[SpeechUpdate] = []
                with pytest.raises(WeirError) as raised:
                    await _collect(updates, seen)
                assert engine.admission.busy == 0
            failed = raised.value.failure
            assert (failed.reason, failed.code) == (Reason.SEGMENT_FAILED, GrpcCode.INTERNAL)
            assert "secret" not in repr(failed)
            assert [type(update) for update in seen] == [AudioChunk] * chunks
    assert "secret" not in "".join(capfd.readouterr())


async def test_an_adapter_may_refuse_a_request_in_our_terms() -> None:
    """WEIR-200: a recording that cannot be read is the caller's fault, and the adapter knows it."""
    refusal = failure(Reason.INVALID_MESSAGE, "The reference recording cannot be decoded.")
    adapter = ScriptedAdapter(lambda _: _raises(WeirError(refusal), after=0))
    async with _engine(adapter) as engine:
        with pytest.raises(WeirError) as raised:
            await _speak(engine, segment())
    assert raised.value.failure == refusal


async def test_a_fault_of_our_own_is_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-201: a chain that cannot be built is not blamed on the model."""

    def broken(*_: object) -> None:
        raise RuntimeError("no such filter")

    monkeypatch.setattr("services.tts.rendering.make_encoder", broken)
    async with _engine(ScriptedAdapter(steps_of(BLOCK))) as engine:
        with pytest.raises(WeirError) as raised:
            await _speak(engine, segment())
    assert raised.value.failure.reason is Reason.INTERNAL
    assert "filter" not in raised.value.failure.message


async def test_a_model_that_never_stops_is_stopped() -> None:
    """WEIR-188: the greatest duration of a segment ends it, and the iterator is closed."""

    def script(_: Utterance) -> Iterator[Step]:
        while True:
            yield AudioStep(BLOCK)

    adapter = ScriptedAdapter(script)
    async with _engine(adapter, max_audio_s=1.0) as engine:
        with pytest.raises(WeirError) as raised:
            await _speak(engine, segment())
    assert raised.value.failure.reason is Reason.SEGMENT_FAILED
    assert adapter.steps == 11
    assert adapter.closed.is_set()


async def test_the_capabilities_are_the_adapters_within_the_limits_of_the_replica() -> None:
    """WEIR-130: what is told is what is enforced."""
    adapter = ScriptedAdapter(steps_of())
    async with _engine(adapter, max_text_characters=5) as engine:
        assert engine.capabilities == replace(CAPABILITIES, max_text_characters=5)
        with pytest.raises(WeirError) as raised:
            engine.begin(segment(text="123456"))
        assert raised.value.failure.reason is Reason.MESSAGE_TOO_LARGE
        assert engine.admission.busy == 0


async def test_usage_and_metrics_tell_what_was_done() -> None:
    """WEIR-072: a finished segment is measured once, with its audio and its first chunk."""
    metrics = Metrics("tts")
    async with _engine(ScriptedAdapter(steps_of(BLOCK, BLOCK)), metrics) as engine:
        updates = await _speak(engine, segment())
        assert sample_of(metrics, "slots") == 1
        assert sample_of(metrics, "busy_slots") == 0
    assert isinstance(updates[-1], Outcome)
    assert updates[-1].usage.output_audio_ms == 200
    assert sample_of(metrics, "audio_seconds_total") == pytest.approx(0.2)
    for name in ("time_to_first_audio_seconds", "queued_seconds", "real_time_factor"):
        assert sample_of(metrics, f"{name}_count") == 1
    assert sample_of(metrics, "cancel_latency_seconds_count") == 0
