"""The way to a replica against real gRPC servers: acceptance, controls, the end, and retries."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from fractions import Fraction

import pytest
from weir.video.v1 import video_pb2

from contracts.errors import GrpcCode, Reason, WeirError, failure
from contracts.generation import (
    Chunk,
    Control,
    Credit,
    GenerationUpdate,
    Interaction,
    Outcome,
    Pause,
    Playback,
    Resume,
    Stop,
    VideoCompleted,
)
from contracts.video import Pace, VideoCodec
from services.edge.backends import generation_call
from services.edge.backends.controls import ControlQueue
from services.edge.backends.video import VideoBackend
from tests.integration.backends.scripted import PATIENCE_S, with_unknown
from tests.integration.edge_video.scripted import (
    ACCEPTED,
    CHUNK,
    COMPLETED,
    DONE,
    REQUEST,
    TRAILER,
    WHOLE,
    Call,
    Replica,
    backend,
    refuses,
    says,
)
from tests.unit.edge.video.session_fixture import STANDARD


async def collect(subject: VideoBackend) -> list[GenerationUpdate]:
    """Return every update of a generation that runs to its outcome."""
    async with aclosing(subject.generate(REQUEST, ControlQueue(8))) as updates:
        return [update async for update in updates]


async def failure_of(subject: VideoBackend) -> tuple[Reason, list[GenerationUpdate]]:
    """Return the reason that a generation is given up for, and what came before."""
    got: list[GenerationUpdate] = []
    async with aclosing(subject.generate(REQUEST, ControlQueue(8))) as updates:
        try:
            async for update in updates:
                got.append(update)  # noqa: PERF401  # what came before the failure counts
        except WeirError as error:
            return error.failure.reason, got
    raise AssertionError("the generation did not fail")


async def test_a_generation_is_given_whole_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """IO-INV-101, WEIR-179: as it was sent; then the call is half-closed, and nobody cancels it."""
    monkeypatch.setattr(generation_call, "_END_S", 3600.0)  # only the half-close ends the wait
    replica = Replica()
    async with backend(replica) as subject:
        async with asyncio.timeout(PATIENCE_S):
            assert await collect(subject) == WHOLE
            await replica.half_closed.wait()
        assert [count for *_, count in subject.replicas()] == [0]


async def test_a_request_is_written_field_by_field() -> None:
    """IO-INV-001, IO-INV-100: with its identity, its modality and every option."""
    replica = Replica()
    request = replace(
        REQUEST,
        negative_prompt="Blur.",
        width=640,
        height=384,
        frame_rate=Fraction(30000, 1001),
        codec=VideoCodec.AV1,
        num_frames=99,
        options={"num_inference_steps": 4, "guidance_scale": 1.5},
        seed=-1,
        image=b"picture",
        extra_params={"inverted": True, "list": [1, None, "a"]},
        pace=Pace.REALTIME,
        lead_seconds=0.0,
    )
    async with (
        backend(replica) as subject,
        aclosing(subject.generate(request, ControlQueue(8))) as updates,
    ):
        async for _ in updates:
            pass
    config = replica.configs[0].config
    assert (config.identity.session_id, config.identity.attempt) == ("session-1", 1)
    assert (config.prompt.text, config.negative_prompt) == ("A street.", "Blur.")
    assert (config.output.width, config.output.height) == (640, 384)
    assert config.output.frame_rate_numerator == 30000
    assert config.output.codec == 3
    assert (config.num_frames, config.num_inference_steps) == (99, 4)
    assert config.guidance_scale == 1.5
    assert not config.HasField("flow_shift")
    assert (config.seed, config.image_reference) == (-1, b"picture")
    assert dict(config.extra_params) == {"inverted": True, "list": config.extra_params["list"]}
    assert config.pace == video_pb2.PACE_REALTIME
    assert config.HasField("lead_seconds")
    assert config.initial_credits == 2


async def test_absent_options_stay_absent() -> None:
    """WEIR-303: so that the model chooses."""
    replica = Replica()
    async with backend(replica) as subject:
        await collect(subject)
    config = replica.configs[0].config
    for name in ("negative_prompt", "num_frames", "seed", "image_reference", "guidance_scale"):
        assert not config.HasField(name)
    assert (config.output.width, config.output.frame_rate_numerator) == (0, 0)


async def test_controls_are_written_after_the_acceptance_and_in_order() -> None:
    """WEIR-179: nothing before; credits first, then as they came."""
    configured, accept = asyncio.Event(), asyncio.Event()

    async def script(call: Call) -> None:
        configured.set()
        await accept.wait()
        await call.say(ACCEPTED, CHUNK, TRAILER, COMPLETED)
        async for request in call.requests:
            if request.WhichOneof("message") == "stop":
                break
        await call.say(replace(DONE, stopped=True))
        async for _ in call.requests:
            pass

    replica = Replica(script)
    controls = ControlQueue(8)
    sent: list[Control] = [
        Interaction("a", "Snow.", 3, {"brightness": 1}),
        Pause(),
        Resume(),
        Playback(1.5),
    ]
    async with backend(replica) as subject:
        for control in (*sent, Playback(1.5), Credit(1), Stop(), Credit(2)):
            controls.put(control)
        async with aclosing(subject.generate(REQUEST, controls)) as updates:
            first = asyncio.ensure_future(anext(updates))
            async with asyncio.timeout(PATIENCE_S):
                await configured.wait()
            assert not replica.later
            accept.set()
            assert await first == ACCEPTED
            assert [type(update) async for update in updates][-1] is Outcome
        async with asyncio.timeout(PATIENCE_S):
            await replica.half_closed.wait()
    names = [request.WhichOneof("message") for request in replica.later]
    assert names == ["credit", "interaction", "pause", "resume", "playback", "stop"]
    credit, interaction, *_ = replica.later
    assert credit.credit.chunks == 3
    assert interaction.interaction.transition_chunks == 3
    assert dict(interaction.interaction.event_fields) == {"brightness": 1.0}


async def test_the_outcome_is_the_verdict_whatever_the_call_ends_with() -> None:
    """WEIR-179: a status that follows, or none, changes nothing."""
    told = failure(Reason.INTERNAL, "As told.")

    async def script(call: Call) -> None:
        await call.say(ACCEPTED, Outcome(told, False, 0))
        await call.fail(failure(Reason.DEADLINE_EXCEEDED, "Something else."))

    async with backend(Replica(script)) as subject:
        updates = await collect(subject)
    last = updates[-1]
    assert isinstance(last, Outcome)
    assert last.failure == told


async def test_a_status_that_races_writes_is_not_mistaken_for_them() -> None:
    """WEIR-179: the service ends while controls are being written; its word counts."""
    controls = ControlQueue(100_000)

    async def script(call: Call) -> None:
        await call.say(ACCEPTED)
        async for _ in call.requests:
            break
        await call.say(Outcome(failure(Reason.SHUTTING_DOWN, "Going."), False, 0))

    async with backend(Replica(script)) as subject:
        for _ in range(2000):
            controls.put(Pause())
        async with aclosing(subject.generate(REQUEST, controls)) as updates:
            got = [update async for update in updates]
    outcome = got[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.SHUTTING_DOWN


async def test_a_replica_that_goes_away_is_told_so() -> None:
    """WEIR-134: nothing is tried again once it has been accepted."""
    other = Replica()

    async def script(call: Call) -> None:
        await call.say(ACCEPTED, CHUNK)
        await call.fail(failure(Reason.BACKEND_UNAVAILABLE, "Gone."))

    async with backend(Replica(script)) as subject:
        reason, got = await failure_of(subject)
    assert reason is Reason.BACKEND_UNAVAILABLE
    assert got == [ACCEPTED, CHUNK]
    assert not other.configs


VIOLATIONS: list[list[GenerationUpdate]] = [
    [CHUNK],
    [DONE],
    [ACCEPTED, ACCEPTED],
    [ACCEPTED, replace(CHUNK, transport_chunk_index=1)],
    [ACCEPTED, replace(CHUNK, generation_chunk_index=1)],
    [ACCEPTED, TRAILER],
    [ACCEPTED, CHUNK, TRAILER, replace(CHUNK, transport_chunk_index=2, generation_chunk_index=1)],
    [ACCEPTED, CHUNK, COMPLETED],
    [ACCEPTED, CHUNK, TRAILER, COMPLETED, COMPLETED],
    [ACCEPTED, CHUNK, TRAILER, DONE],
    [ACCEPTED, CHUNK, TRAILER, COMPLETED, replace(DONE, transport_chunk_count=1)],
    [ACCEPTED, Chunk(0, 0, 9, b"a"), Chunk(1, 1, 9, b"b"), Chunk(2, 2, 9, b"c")],
    [ACCEPTED, VideoCompleted(1, 0, 0, 0)],
]


@pytest.mark.parametrize("updates", VIOLATIONS)
async def test_a_stream_that_breaks_the_contract_is_given_up(
    updates: list[GenerationUpdate],
) -> None:
    """IO-INV-101, WEIR-178: INTERNAL, the call cancelled, nothing tried again."""
    replica = Replica(says(*updates))
    async with backend(replica) as subject:
        reason, _ = await failure_of(subject)
        assert reason is Reason.INTERNAL
        assert len(replica.configs) == 1


async def test_an_answer_to_another_generation_is_refused() -> None:
    """IO-INV-100: nothing of another viewer is shown."""

    async def script(call: Call) -> None:
        message = call.written(ACCEPTED)
        message.identity.request_id = "video_stream-2"
        await call.context.write(message)
        async for _ in call.requests:
            pass

    async with backend(Replica(script)) as subject:
        assert (await failure_of(subject))[0] is Reason.INTERNAL


async def test_what_a_newer_service_adds_is_ignored() -> None:
    """WEIR-302: unknown fields, and updates of an unknown kind."""

    async def script(call: Call) -> None:
        for update in WHOLE:
            message = call.written(update)
            await call.context.write(
                video_pb2.StreamGenerateResponse.FromString(with_unknown(message))
            )
            if update != DONE:
                await call.context.write(
                    video_pb2.StreamGenerateResponse(identity=call.config.config.identity)
                )
        async for _ in call.requests:
            pass

    async with backend(Replica(script)) as subject:
        assert await collect(subject) == WHOLE


@pytest.mark.parametrize(
    "reason", [Reason.OVERLOADED, Reason.SHUTTING_DOWN, Reason.BACKEND_UNAVAILABLE]
)
async def test_a_refusal_is_taken_to_another_replica(reason: Reason) -> None:
    """IO-INV-100, WEIR-134: the same request as the next attempt."""
    replicas = (Replica(refuses(reason)), Replica(refuses(reason), says(*WHOLE)))
    async with backend(*replicas) as subject:
        assert await collect(subject) == WHOLE
    attempts = sorted(attempt for replica in replicas for attempt in replica.attempts)
    assert attempts == list(range(1, len(attempts) + 1))
    assert len(attempts) >= 2
    ids = {c.config.identity.request_id for replica in replicas for c in replica.configs}
    assert ids == {"video_stream-1"}


@pytest.mark.parametrize(
    "reason", [Reason.INVALID_MESSAGE, Reason.UNSUPPORTED_OPTION, Reason.INTERNAL]
)
async def test_a_request_that_is_at_fault_is_not_tried_again(reason: Reason) -> None:
    """WEIR-134: another replica would say the same."""
    replica = Replica(refuses(reason))
    async with backend(replica) as subject:
        assert (await failure_of(subject))[0] is reason
    assert replica.attempts == [1]


async def test_when_all_are_full_the_client_is_told_when_to_return() -> None:
    """WEIR-134: within the deadline, with the delay that the service named."""
    replica = Replica(refuses(Reason.OVERLOADED, 10_000))
    async with backend(replica, accept_deadline_s=0.3) as subject:
        with pytest.raises(WeirError) as caught:
            await collect(subject)
    assert caught.value.failure.reason is Reason.OVERLOADED
    assert caught.value.failure.code is GrpcCode.RESOURCE_EXHAUSTED
    assert caught.value.failure.retry_after_ms == 10_000


async def test_a_silent_replica_counts_as_lost() -> None:
    """WEIR-134: the wait for an acceptance is bounded, and the call is cancelled."""

    async def script(call: Call) -> None:
        await asyncio.Event().wait()

    replica = Replica(script)
    async with backend(replica, accept_deadline_s=0.2) as subject:
        assert (await failure_of(subject))[0] is Reason.BACKEND_UNAVAILABLE
        async with asyncio.timeout(PATIENCE_S):
            await replica.cancelled.wait()


async def test_closing_the_generator_cancels_the_call() -> None:
    """WEIR-133: within it nothing runs on, and no task is left."""

    async def script(call: Call) -> None:
        await call.say(ACCEPTED)
        await asyncio.Event().wait()

    replica = Replica(script)
    async with backend(replica) as subject:
        async with aclosing(subject.generate(REQUEST, ControlQueue(8))) as updates:
            assert await anext(updates) == ACCEPTED
        async with asyncio.timeout(PATIENCE_S):
            await replica.cancelled.wait()


async def test_closing_the_backend_ends_a_generation_as_a_shutdown() -> None:
    """WEIR-181: the edge goes, not the replica."""

    async def script(call: Call) -> None:
        await call.say(ACCEPTED)
        await asyncio.Event().wait()

    async with (
        backend(Replica(script)) as subject,
        aclosing(subject.generate(REQUEST, ControlQueue(8))) as updates,
    ):
        assert await anext(updates) == ACCEPTED
        waiting = asyncio.ensure_future(anext(updates))
        await subject.aclose()
        with pytest.raises(WeirError) as caught:
            await waiting
    assert caught.value.failure.reason is Reason.SHUTTING_DOWN


async def test_replicas_offer_what_all_of_them_declare() -> None:
    """WEIR-149: and nothing when they cannot stand for one another."""
    poorer = replace(
        STANDARD, image_reference=False, extra_params=frozenset(), codecs=(VideoCodec.H264,)
    )
    async with backend(Replica(), Replica(capabilities=poorer)) as subject:
        assert subject.capabilities() == poorer
    async with backend(Replica(), Replica(capabilities=replace(STANDARD, chunk_frames=33))) as two:
        assert two.capabilities() is None
