"""`python -m services.tts` as an operator runs it, on loopback."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from weir.tts.v1 import tts_pb2

from contracts.errors import GrpcCode, Reason
from services.runtime.channel import open_channel
from services.runtime.errors import failure_of_rpc_error
from services.tts.process import SERVICE
from tests.integration.tts.serving import (
    PATIENCE_S,
    audio_of,
    connected,
    kind_of_next,
    outcome_of,
    speaking,
    updates_of,
)
from tests.processes import READY_TIMEOUT_S, ServiceProcess, StartProcess
from tests.unit.tts.support import wire_request

TTS = "services.tts"
CLIENT = "tests.integration.tts.talking_client"
TONE = {"TTS_ADAPTER": "tone", "TTS_PORT": "0", "TTS_ADMIN_PORT": "0"}


async def _replica(start_process: StartProcess, **environ: str) -> ServiceProcess:
    return await start_process(TTS, ready_timeout_s=READY_TIMEOUT_S, **{**TONE, **environ})


async def _metric(process: ServiceProcess, name: str) -> float:
    address = (await process.event("admin_listening"))["address"]

    def read() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as answer:
            return str(answer.read(), "utf-8")

    for line in (await asyncio.to_thread(read)).splitlines():
        key, _, value = line.rpartition(" ")
        if key == f"weir_tts_{name}":
            return float(value)
    raise AssertionError(name)


async def test_a_replica_serves_from_its_ready_line_to_its_end(start_process: StartProcess) -> None:
    """WEIR-067: port 0 is told in the ready line; health, reflection and metrics are there."""
    process = await _replica(start_process)
    loaded = await process.event("model_loaded")
    assert (loaded["model"], loaded["slots"]) == ("tone", 8)
    async with open_channel(process.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        listing = [answer async for answer in reflection.ServerReflectionInfo(iter([asked]))]
        names = [service.name for service in listing[0].list_services_response.service]
        assert SERVICE in names
    async with connected(process.address) as stub, speaking(stub, wire_request()) as call:
        responses = await updates_of(call)
        assert len(audio_of(responses)) == 10 * 60 * 24 * 2
        answer = await stub.GetCapabilities(tts_pb2.GetCapabilitiesRequest())
        assert answer.capabilities.model == "tone"
    assert await _metric(process, "completions_total") == 1
    process.terminate()
    assert await process.exited() == 0


@pytest.mark.parametrize(
    "message",
    [b"\xff\xff\xff\xff", wire_request().SerializeToString()[:-1], b"\x0a\x04\x0a\x02\xff\xfe"],
    ids=["no message", "cut short", "not UTF-8"],
)
async def test_bytes_that_are_no_request_are_refused_as_such(
    start_process: StartProcess, message: bytes
) -> None:
    """WEIR-201: with a reason of ours, no text of the decoder, and nothing in the log."""
    process = await _replica(start_process)
    async with open_channel(process.address) as channel:
        method: Any = channel.unary_stream(f"/{SERVICE}/Synthesize")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(message, timeout=PATIENCE_S).read()
    failed = failure_of_rpc_error(caught.value)
    assert (failed.reason, failed.code) == (Reason.INVALID_MESSAGE, GrpcCode.INVALID_ARGUMENT)
    assert failed.message == "The request message cannot be decoded."
    process.terminate()
    assert await process.exited() == 0
    assert not [line for line in process.logs() if line["level"] == "error"]


async def test_sigterm_lets_the_running_stream_finish_and_refuses_new_ones(
    start_process: StartProcess,
) -> None:
    """WEIR-068, WEIR-080: nothing that was accepted is lost, nothing new is taken."""
    options = "step_ms=60,step_time_s=0.02"
    process = await _replica(start_process, TTS_ADAPTER_OPTIONS=options)
    text = "x" * 100
    async with connected(process.address) as stub, speaking(stub, wire_request(text)) as running:
        assert await kind_of_next(running) == "accepted"
        assert await kind_of_next(running) == "audio_chunk"
        process.terminate()
        await process.event("draining")
        async with speaking(stub, wire_request()) as late:
            kinds, failed = await outcome_of(late)
        assert kinds == []
        assert failed is not None
        assert (failed.reason, failed.code) == (Reason.SHUTTING_DOWN, GrpcCode.UNAVAILABLE)
        kinds, failed = await outcome_of(running)
        assert failed is None
        assert kinds == ["audio_chunk"] * 99 + ["audio_completed", "outcome"]
    assert await process.exited() == 0


async def test_a_drain_ends_at_its_deadline(start_process: StartProcess) -> None:
    """WEIR-080: a stream that would go on for minutes is cancelled, and the process ends."""
    process = await _replica(
        start_process, TTS_ADAPTER_OPTIONS="real_time_factor=1", TTS_DRAIN_DEADLINE_S="0.2"
    )
    async with (
        connected(process.address) as stub,
        speaking(stub, wire_request("x" * 10_000)) as running,
    ):
        assert await kind_of_next(running) == "accepted"
        process.terminate()
        kinds, failed = await outcome_of(running)
        assert "outcome" not in kinds
        assert failed is not None
    assert await process.exited() == 0


@pytest.mark.parametrize("event", ["accepted", "audio_chunk"])
async def test_a_client_that_is_killed_frees_its_slot_within_a_second(
    start_process: StartProcess, event: str
) -> None:
    """WEIR-195: no goodbye is needed; measured from the kill to a slot that can be had again."""
    process = await _replica(
        start_process, TTS_SLOTS="1", TTS_ADAPTER_OPTIONS="real_time_factor=0.5"
    )
    client = await start_process(CLIENT, process.address, ready_timeout_s=None)
    await client.event(event)
    assert await _metric(process, "busy_slots") == 1
    client.kill()
    killed = time.monotonic()
    while await _metric(process, "busy_slots"):
        assert time.monotonic() - killed < 1.0
    assert await _metric(process, "wasted_audio_seconds_total") <= 0.25
    assert await _metric(process, "cancellations_total") == 1


async def test_a_failing_model_is_logged_with_its_request_and_without_the_text(
    start_process: StartProcess,
) -> None:
    """WEIR-070, WEIR-201: the worker's line names the call; user text is in no line."""
    process = await _replica(start_process, TTS_ADAPTER_OPTIONS="fail_after_steps=1")
    async with (
        connected(process.address) as stub,
        speaking(stub, wire_request("a secret text")) as call,
    ):
        _, failed = await outcome_of(call)
    assert failed is not None
    assert failed.reason is Reason.SEGMENT_FAILED
    line = await process.event("adapter_failed")
    assert (line["request_id"], line["session_id"]) == ("request-1", "session-1")
    assert "secret" not in process.text()


REFUSED_STARTS = [
    ({"TTS_ADAPTER_OPTIONS": "fail_load=1"}, 1, "model_unavailable", "told to fail"),
    ({"TTS_ADAPTER_OPTIONS": "step_ms=fast"}, 2, "setting_refused", "TTS_ADAPTER_OPTIONS"),
    ({"TTS_ADAPTER_OPTIONS": "novalue"}, 2, "setting_refused", "TTS_ADAPTER_OPTIONS"),
    ({"TTS_ADAPTER": "nobody"}, 2, "setting_refused", "TTS_ADAPTER"),
    ({"TTS_SLOTS": "0"}, 2, "setting_refused", "TTS_SLOTS"),
    ({"TTS_SLOT": "1"}, 2, "setting_refused", "TTS_SLOTS"),
]


@pytest.mark.parametrize(("environ", "status", "event", "text"), REFUSED_STARTS)
async def test_a_start_that_cannot_work_ends_with_a_reason(
    start_process: StartProcess, environ: dict[str, str], status: int, event: str, text: str
) -> None:
    """WEIR-050: a status that is not 0 and one line that names what to change."""
    process = await start_process(TTS, ready_timeout_s=None, **{**TONE, **environ})
    line = await process.event(event)
    assert text in line["problem"]
    assert await process.exited() == status


async def test_a_replica_that_still_loads_answers_and_can_be_stopped(
    start_process: StartProcess,
) -> None:
    """WEIR-067, WEIR-080: it listens before the model is there, and nobody waits for the model."""
    process = await start_process(
        TTS, ready_timeout_s=None, **TONE, TTS_ADAPTER_OPTIONS="load_time_s=300"
    )
    address = str((await process.event("listening"))["address"])
    async with connected(address) as stub, speaking(stub, wire_request()) as call:
        _, failed = await outcome_of(call)
    assert failed is not None
    assert failed.reason is Reason.BACKEND_UNAVAILABLE
    process.terminate()
    assert await process.exited() == 0
