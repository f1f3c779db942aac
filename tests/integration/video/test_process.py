"""`python -m services.video` as an operator runs it, on loopback."""

from __future__ import annotations

import asyncio
import time
import urllib.request

import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from weir.video.v1 import video_pb2

from contracts.errors import Failure, GrpcCode, Reason
from services.runtime.channel import open_channel
from services.video.process import SERVICE
from tests.integration.video.serving import (
    Stub,
    connected,
    failure_in,
    refusal_of,
    viewing,
)
from tests.processes import READY_TIMEOUT_S, ServiceProcess, StartProcess
from tests.unit.video.support import (
    PATIENCE_S,
    config,
    control,
    credit,
    frames_in,
    interaction,
    number_of,
)

VIDEO = "services.video"
CLIENT = "tests.integration.video.watching_client"
SMALL = "width=64,height=64,first_chunk_frames=3,chunk_frames=4,num_frames=11"
PATTERN = {
    "VIDEO_ADAPTER": "pattern",
    "VIDEO_PORT": "0",
    "VIDEO_ADMIN_PORT": "0",
    "VIDEO_ADAPTER_OPTIONS": SMALL,
}


async def _replica(start_process: StartProcess, options: str = "", **env: str) -> ServiceProcess:
    chosen = {"VIDEO_ADAPTER_OPTIONS": f"{SMALL},{options}", **env}
    return await start_process(VIDEO, ready_timeout_s=READY_TIMEOUT_S, **{**PATTERN, **chosen})


async def _metric(process: ServiceProcess, name: str) -> float:
    address = (await process.event("admin_listening"))["address"]

    def read() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as answer:
            return str(answer.read(), "utf-8")

    for line in (await asyncio.to_thread(read)).splitlines():
        key, _, value = line.rpartition(" ")
        if key == f"weir_video_{name}":
            return float(value)
    raise AssertionError(name)


async def test_a_replica_serves_from_its_ready_line_to_its_end(start_process: StartProcess) -> None:
    """WEIR-067: port 0 is told in the ready line; health, reflection and metrics are there."""
    process = await _replica(start_process, VIDEO_MAX_SESSIONS="3")
    loaded = await process.event("model_loaded")
    assert (loaded["model"], loaded["slots"]) == ("pattern", 3)
    async with open_channel(process.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        listing = [answer async for answer in reflection.ServerReflectionInfo(iter([asked]))]
        names = [service.name for service in listing[0].list_services_response.service]
        assert SERVICE in names
    async with connected(process.address) as stub:
        async with viewing(stub) as viewer:
            await viewer.watch()
            assert await viewer.end() is None
        assert [number_of(frame) for frame in frames_in(viewer.payloads)] == list(range(11))
        answer = await stub.GetCapabilities(video_pb2.GetCapabilitiesRequest())
        assert answer.capabilities.model == "pattern"
    assert await _metric(process, "completions_total") == 1
    assert await _metric(process, "slots") == 3
    process.terminate()
    assert await process.exited() == 0


async def test_sigterm_lets_running_generations_finish_and_refuses_new_ones(
    start_process: StartProcess,
) -> None:
    """WEIR-068, WEIR-080: nothing that was accepted is lost, nothing new is taken."""
    process = await _replica(start_process, "step_time_s=0.01")
    async with connected(process.address) as stub, viewing(stub, config(num_frames=63)) as viewer:
        await viewer.until("chunk")
        process.terminate()
        await process.event("draining")
        refused = await refusal_of(stub)
        assert (refused.reason, refused.code) == (Reason.SHUTTING_DOWN, GrpcCode.UNAVAILABLE)
        await viewer.send(credit())
        assert failure_in(await viewer.watch()) is None
        assert await viewer.end() is None
        assert [number_of(frame) for frame in frames_in(viewer.payloads)] == list(range(63))
    assert await process.exited() == 0


async def test_a_drain_ends_at_its_deadline_and_says_so(start_process: StartProcess) -> None:
    """WEIR-080: an endless generation is failed with SHUTTING_DOWN, and the process ends."""
    process = await _replica(start_process, VIDEO_DRAIN_DEADLINE_S="0.2")
    async with (
        connected(process.address) as stub,
        viewing(stub, config(endless=True, credits=1)) as viewer,
    ):
        process.terminate()
        failed = failure_in(await viewer.watch())
        assert failed is not None
        assert failed.reason is Reason.SHUTTING_DOWN
        assert await viewer.end() == failed
    assert await process.exited() == 0


@pytest.mark.parametrize("event", ["accepted", "chunk"])
async def test_a_client_that_is_killed_frees_its_slot_within_a_second(
    start_process: StartProcess, event: str
) -> None:
    """WEIR-239: no goodbye is needed; measured from the kill to a slot that can be had again."""
    process = await _replica(start_process, "step_time_s=0.05", VIDEO_MAX_SESSIONS="1")
    client = await start_process(CLIENT, process.address, ready_timeout_s=None)
    await client.event(event)
    assert await _metric(process, "busy_sessions") == 1
    client.kill()
    killed = time.monotonic()
    while await _metric(process, "busy_sessions"):
        assert time.monotonic() - killed < 1.0
    assert await _metric(process, "cancellations_total") == 1


async def test_a_failing_model_is_logged_with_its_request_and_without_the_prompt(
    start_process: StartProcess,
) -> None:
    """WEIR-070, WEIR-201: the line of the thread names the call; user text is in no line."""
    process = await _replica(start_process, "fail_chunk=1,fail_marker=!,step_time_s=0.1")
    async with (
        connected(process.address) as stub,
        viewing(stub, config("a secret text")) as viewer,
    ):
        await viewer.send(interaction("a", "another secret!"))
        await viewer.until("interaction_failed")
        failed = failure_in(await viewer.watch())
    assert failed is not None
    assert failed.reason is Reason.INTERNAL
    for event in ("prompt_not_encoded", "adapter_failed"):
        line = await process.event(event)
        assert (line["request_id"], line["session_id"]) == ("request-1", "session-1")
    assert "secret" not in process.text()


REFUSED_STARTS = [
    ({"VIDEO_ADAPTER_OPTIONS": "fail_load=1"}, 1, "model_unavailable", "told to fail"),
    ({"VIDEO_ADAPTER_OPTIONS": "steps=fast"}, 2, "setting_refused", "VIDEO_ADAPTER_OPTIONS"),
    ({"VIDEO_ADAPTER_OPTIONS": "novalue"}, 2, "setting_refused", "VIDEO_ADAPTER_OPTIONS"),
    ({"VIDEO_ADAPTER": "nobody"}, 2, "setting_refused", "VIDEO_ADAPTER"),
    ({"VIDEO_MAX_SESSIONS": "0"}, 2, "setting_refused", "VIDEO_MAX_SESSIONS"),
    ({"VIDEO_CODECS": "h264,mpeg2"}, 2, "setting_refused", "VIDEO_CODECS"),
    ({"VIDEO_SLOTS": "1"}, 2, "setting_refused", "VIDEO_SLOTS"),
]


@pytest.mark.parametrize(("environ", "status", "event", "text"), REFUSED_STARTS)
async def test_a_start_that_cannot_work_ends_with_a_reason(
    start_process: StartProcess, environ: dict[str, str], status: int, event: str, text: str
) -> None:
    """WEIR-050: a status that is not 0 and one line that names what to change."""
    process = await start_process(VIDEO, ready_timeout_s=None, **{**PATTERN, **environ})
    line = await process.event(event)
    assert text in line["problem"]
    assert await process.exited() == status


async def test_a_replica_that_still_loads_answers_and_can_be_stopped(
    start_process: StartProcess,
) -> None:
    """WEIR-067, WEIR-080: it listens before the model is there, and nobody waits for the model."""
    options = {"VIDEO_ADAPTER_OPTIONS": "load_time_s=300"}
    process = await start_process(VIDEO, ready_timeout_s=None, **{**PATTERN, **options})
    address = str((await process.event("listening"))["address"])
    async with connected(address) as stub:
        refused: Failure = await refusal_of(stub)
    assert refused.reason is Reason.BACKEND_UNAVAILABLE
    process.terminate()
    assert await process.exited() == 0


async def _rounds(stub: Stub, count: int) -> None:
    """Open and end generations in every way there is."""
    for index in range(count):
        async with viewing(stub, config(endless=True, credits=2)) as viewer:
            await viewer.until("chunk")
            match index % 3:
                case 0:
                    viewer.call.cancel()
                case 1:
                    await viewer.send(control("stop"))
                    await viewer.until("outcome")
                    await viewer.end()
                case 2:
                    await viewer.end()


async def _chunks(stub: Stub, count: int) -> None:
    """Watch one long video."""
    async with viewing(stub, config(endless=True, credits=4)) as viewer:
        for index in range(count):
            made = await viewer.until("chunk")
            assert made.video.generation_chunk_index == index
            viewer.received.clear()
            await viewer.send(credit(), interaction(f"e{index}", f"scene {index}", index % 4))
        await viewer.end()


async def _flat(start_process: StartProcess, rounds: int, chunks: int) -> None:
    process = await _replica(start_process)
    measured = psutil.Process(process.pid)
    async with connected(process.address) as stub:
        for _ in range(2):  # What is made once and kept is there after this.
            await _rounds(stub, rounds)
            await _chunks(stub, chunks)
        threads, memory = measured.num_threads(), measured.memory_info().rss
        await _rounds(stub, rounds)
        await _chunks(stub, chunks)
    assert await _metric(process, "busy_sessions") == 0
    assert measured.num_threads() <= threads
    assert measured.memory_info().rss - memory < 8 * 1024 * 1024


async def test_memory_and_threads_stay_flat(start_process: StartProcess) -> None:
    """WEIR-227: 20 generations opened and ended, and 300 chunks, after as many before."""
    await _flat(start_process, 20, 300)


@pytest.mark.slow
async def test_memory_and_threads_stay_flat_for_long(start_process: StartProcess) -> None:
    """WEIR-227: 300 generations opened and ended, and 3,000 chunks, after as many before."""
    await _flat(start_process, 300, 3000)
