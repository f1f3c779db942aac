"""What ends a call, and what a call's end frees: over a real connection, with scripted steps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from weir.tts.v1 import tts_pb2_grpc

from contracts.errors import Failure, GrpcCode, Reason
from services.runtime.channel import open_channel
from services.tts.adapters.base import AudioStep, ModelUnavailableError, Step, Utterance
from services.tts.process import SERVICE
from tests.integration.tts.serving import (
    PATIENCE_S,
    Call,
    Replica,
    connected,
    kind_of_next,
    make_process,
    next_of,
    outcome_of,
    serving,
    speaking,
    until,
)
from tests.unit.tts.support import (
    ScriptedAdapter,
    sample_of,
    sine,
    steps_of,
    wire_request,
)

BLOCK = sine(0.1)
BLOCK_BYTES = 4800


class Gate:
    """An endless voice that makes a step only when it is let to."""

    def __init__(self, concurrency: int = 1) -> None:
        self._permits = threading.Semaphore(0)
        self.inside = threading.Semaphore(0)
        """Released whenever a voice is inside a step."""
        self.adapter = ScriptedAdapter(self._script, concurrency=concurrency)

    def let(self, steps: int) -> None:
        """Let that many steps be made."""
        self._permits.release(steps)

    async def entered(self) -> None:
        """Wait until a voice is inside a step."""
        assert await asyncio.to_thread(self.inside.acquire, True, PATIENCE_S)

    def _script(self, _: Utterance) -> Iterator[Step]:
        while True:
            self.inside.release()
            assert self._permits.acquire(timeout=PATIENCE_S)
            yield AudioStep(BLOCK)


@asynccontextmanager
async def _inside_a_step(gate: Gate, replica: Replica) -> AsyncIterator[Call]:
    async with speaking(replica.stub, wire_request()) as call:
        assert await kind_of_next(call) == "accepted"
        await gate.entered()
        yield call


async def test_a_cancelled_call_stops_the_model_within_its_step() -> None:
    """WEIR-194, WEIR-195: no step is begun after the cancellation, and the slot is free at once."""
    gate = Gate()
    async with serving(gate.adapter) as replica:
        async with _inside_a_step(gate, replica) as call:
            call.cancel()
            # The server knows when its own call has ended; the thread is still inside its step.
            await until(lambda: sample_of(replica.metrics, "cancellations_total"))
            assert replica.busy == 1
            gate.let(10)
            await replica.idle()
        assert gate.adapter.steps == 1
        assert gate.adapter.closed.is_set()
        assert sample_of(replica.metrics, "wasted_audio_seconds_total") == pytest.approx(0.1)
        assert sample_of(replica.metrics, "cancel_latency_seconds_count") == 1


async def test_a_connection_that_is_lost_ends_its_calls() -> None:
    """WEIR-195: a client that vanishes frees its slot like one that cancels."""
    gate = Gate()
    async with serving(gate.adapter) as replica, AsyncExitStack() as lost:
        assert replica.process.address is not None
        channel = open_channel(replica.process.address)
        stub: tts_pb2_grpc.TtsServiceAsyncStub = tts_pb2_grpc.TtsServiceStub(channel)
        call = await lost.enter_async_context(speaking(stub, wire_request()))
        assert await kind_of_next(call) == "accepted"
        await gate.entered()
        await channel.close()
        await until(lambda: sample_of(replica.metrics, "cancellations_total"))
        gate.let(10)
        await replica.idle()
        assert gate.adapter.steps == 1


async def test_a_full_replica_refuses_with_a_delay_and_queues_what_fits() -> None:
    """WEIR-191: position in the queue in `accepted`; RESOURCE_EXHAUSTED with RetryInfo beyond."""
    gate = Gate()
    async with serving(gate.adapter, QUEUE_REQUESTS="1") as replica:
        async with _inside_a_step(gate, replica), speaking(replica.stub, wire_request()) as second:
            response = await next_of(second)
            assert response is not None
            assert response.accepted.queue_position == 1
            async with speaking(replica.stub, wire_request()) as third:
                kinds, failed = await outcome_of(third)
            assert kinds == []
            assert failed is not None
            assert (failed.reason, failed.code) == (Reason.OVERLOADED, GrpcCode.RESOURCE_EXHAUSTED)
            assert failed.retry_after_ms is not None
            assert 100 <= failed.retry_after_ms <= 5000
            assert sample_of(replica.metrics, "refusals_total", reason="OVERLOADED") == 1
            # A place that is given up is free for the next.
            second.cancel()
            await until(lambda: not replica.queued)
            async with speaking(replica.stub, wire_request()) as fourth:
                assert await kind_of_next(fourth) == "accepted"
        await until(lambda: sample_of(replica.metrics, "cancellations_total") == 3)
        gate.let(1)
        await replica.idle()
        assert gate.adapter.steps == 1


@pytest.mark.parametrize("whose", ["the client's", "the replica's"])
async def test_a_deadline_ends_the_segment(whose: str) -> None:
    """WEIR-195: DEADLINE_EXCEEDED, whoever set it; the model stops within its step."""
    gate = Gate()
    limit = {"MAX_CALL_S": "0.2"} if whose == "the replica's" else {}
    timeout_s = PATIENCE_S if limit else 0.2
    async with serving(gate.adapter, **limit) as replica:
        async with speaking(replica.stub, wire_request(), timeout_s) as call:
            kinds, failed = await outcome_of(call)
        assert kinds == ["accepted"]
        assert failed is not None
        assert failed.reason is Reason.DEADLINE_EXCEEDED
        ended = "failures_total" if limit else "cancellations_total"
        labels = {"reason": "DEADLINE_EXCEEDED"} if limit else {}
        await until(lambda: sample_of(replica.metrics, ended, **labels))
        gate.let(10)
        await replica.idle()
        assert gate.adapter.steps == 1


async def test_a_reader_that_stalls_is_not_run_ahead_of() -> None:
    """WEIR-193, WEIR-060: connection window, hand-over and one step at the door; then it waits."""

    def script(_: Utterance) -> Iterator[Step]:
        while True:
            yield AudioStep(BLOCK)

    adapter = ScriptedAdapter(script)
    async with serving(adapter, HANDOVER_CHUNKS="2") as replica:
        async with speaking(replica.stub, wire_request()) as call:
            assert await kind_of_next(call) == "accepted"
            assert await asyncio.to_thread(
                adapter.wait_for_steps, 60_000 // BLOCK_BYTES, PATIENCE_S
            )
            # 100 KiB on the connection, two chunks handed over, one being put, one being written.
            beyond = 100 * 1024 // BLOCK_BYTES + 2 + 1 + 1 + 1
            assert not await asyncio.to_thread(adapter.wait_for_steps, beyond, 0.5)
            stalled_at = adapter.steps
            # The reader comes back and the voice goes on where it was.
            for index in range(100):
                response = await next_of(call)
                assert response is not None
                assert response.audio_chunk.chunk_index == index
            assert adapter.steps > stalled_at
        await replica.idle()


async def test_a_reader_that_stalls_and_goes_is_a_cancellation_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-195: the write that was under way fails first; that is no fault of the service."""

    def script(_: Utterance) -> Iterator[Step]:
        while True:
            yield AudioStep(BLOCK)

    adapter = ScriptedAdapter(script)
    async with serving(adapter) as replica:
        async with speaking(replica.stub, wire_request()) as call:
            assert await kind_of_next(call) == "accepted"
            # Long enough for the server's write to be stuck in the window for good.
            assert not await asyncio.to_thread(adapter.wait_for_steps, 1000, 0.5)
        await replica.idle()
        await until(lambda: sample_of(replica.metrics, "cancellations_total"))
        assert sample_of(replica.metrics, "failures_total", reason="INTERNAL") == 0
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_reader_that_stalls_too_long_loses_its_slot() -> None:
    """WEIR-195: nobody holds a slot without reading; the other sessions go on."""

    def script(_: Utterance) -> Iterator[Step]:
        while True:
            yield AudioStep(BLOCK)

    adapter = ScriptedAdapter(script)
    async with serving(adapter, SEND_STALL_S="0.2") as replica:
        async with speaking(replica.stub, wire_request()) as call:
            assert await kind_of_next(call) == "accepted"
            assert await asyncio.to_thread(adapter.closed.wait, PATIENCE_S)
            await replica.idle()
            kinds, failed = await outcome_of(call)
            assert set(kinds) == {"audio_chunk"}
            assert failed is not None
            assert failed.reason is Reason.DEADLINE_EXCEEDED
        assert sample_of(replica.metrics, "failures_total", reason="DEADLINE_EXCEEDED") == 1


async def test_slots_are_not_lost_whatever_happens_to_calls() -> None:
    """WEIR-190: after calls that end, fail, are cancelled or never read, every slot is free."""

    def script(utterance: Utterance) -> Iterator[Step]:
        for _ in range(5):
            yield AudioStep(BLOCK)
        if utterance.text == "fail":
            raise RuntimeError
        yield AudioStep(BLOCK)

    async def one(replica: Replica, number: int) -> None:
        text = "fail" if number % 3 == 0 else "speak"
        async with speaking(replica.stub, wire_request(text)) as call:
            for _ in range(number % 9):
                if await next_of(call) is None:
                    break

    adapter = ScriptedAdapter(script, concurrency=3)
    async with serving(adapter) as replica:
        await asyncio.gather(
            *(one(replica, number) for number in range(60)), return_exceptions=True
        )
        await replica.idle()
        assert (replica.busy, replica.queued) == (0, 0)
        async with speaking(replica.stub, wire_request("speak")) as call:
            assert (await outcome_of(call))[0][-1] == "outcome"


class Slow(ScriptedAdapter):
    """Takes its time to load, as long as the test wants."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(steps_of(BLOCK))
        self._fails = fails
        self.loading = threading.Event()
        self.may_load = threading.Event()
        self.closings = 0

    def load(self) -> None:
        """Wait until the test lets it end."""
        self.loading.set()
        assert self.may_load.wait(PATIENCE_S)
        if self._fails:
            raise ModelUnavailableError("voice.onnx is missing in /models")

    def close(self) -> None:
        """Count."""
        self.closings += 1


async def _health(address: str) -> list[int]:
    async with open_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        requests = [health_pb2.HealthCheckRequest(service=name) for name in ("", SERVICE)]
        return [(await stub.Check(request)).status for request in requests]


async def _failure(address: str) -> Failure | None:
    async with connected(address) as stub, speaking(stub, wire_request()) as call:
        return (await outcome_of(call))[1]


async def test_the_replica_tells_the_truth_from_its_first_moment_to_its_last() -> None:
    """WEIR-067, WEIR-068: it answers while it loads, serves when loaded, and drains politely."""
    serving_now = health_pb2.HealthCheckResponse.SERVING
    not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
    adapter = Slow()
    process, _ = make_process(adapter)
    start = asyncio.create_task(process.start())
    assert await asyncio.to_thread(adapter.loading.wait, PATIENCE_S)
    address = process.address
    assert address is not None
    assert await _health(address) == [not_serving, not_serving]
    failed = await _failure(address)
    assert failed is not None
    assert (failed.reason, failed.code) == (Reason.BACKEND_UNAVAILABLE, GrpcCode.UNAVAILABLE)
    assert not process.ready

    adapter.may_load.set()
    assert await start == address
    assert process.ready
    assert await _health(address) == [serving_now, serving_now]
    assert await _failure(address) is None

    await process.drain()
    assert not process.ready
    assert await _health(address) == [not_serving, not_serving]
    failed = await _failure(address)
    assert failed is not None
    assert (failed.reason, failed.code) == (Reason.SHUTTING_DOWN, GrpcCode.UNAVAILABLE)
    await process.close()
    assert adapter.closings == 1


async def test_a_model_that_cannot_be_loaded_ends_the_start() -> None:
    """WEIR-067: the start fails with the adapter's own reason, and the adapter is closed once."""
    adapter = Slow(fails=True)
    adapter.may_load.set()
    process, _ = make_process(adapter)
    with pytest.raises(ModelUnavailableError, match=r"voice\.onnx"):
        await process.start()
    await process.close()
    assert adapter.closings == 1


async def test_a_drain_lets_running_and_waiting_segments_finish() -> None:
    """WEIR-068: what was accepted is spoken to its end."""
    go_on = threading.Event()

    def script(_: Utterance) -> Iterator[Step]:
        yield AudioStep(BLOCK)
        assert go_on.wait(PATIENCE_S)
        yield AudioStep(BLOCK)

    async with (
        serving(ScriptedAdapter(script)) as replica,
        speaking(replica.stub, wire_request()) as running,
        speaking(replica.stub, wire_request()) as waiting,
    ):
        for call in (running, waiting):
            assert await kind_of_next(call) == "accepted"
        drain = asyncio.create_task(replica.process.drain())
        await until(lambda: not replica.process.ready)
        assert not drain.done()
        go_on.set()
        ends = [(await outcome_of(call))[0][-1] for call in (running, waiting)]
        assert ends == ["outcome", "outcome"]
        await drain


async def test_closing_does_not_free_a_model_that_is_still_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """WEIR-194: a step that does not end is left alone; the process ends without it."""
    monkeypatch.setattr("services.tts.process.LEAVE_TIMEOUT_S", 0.1)
    gate = Gate()
    closings: list[None] = []
    monkeypatch.setattr(gate.adapter, "close", lambda: closings.append(None))
    process, _ = make_process(gate.adapter)
    address = await process.start()
    async with connected(address) as stub, speaking(stub, wire_request()) as call:
        assert await kind_of_next(call) == "accepted"
        await gate.entered()
        await process.close()
    assert closings == []
    gate.let(1)
    assert await asyncio.to_thread(gate.adapter.closed.wait, PATIENCE_S)
