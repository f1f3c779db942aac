"""Real processes: how they start, what they say, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys

import grpc.aio
import psutil
import pytest

from contracts.errors import Reason
from services.runtime.channel import owned_call
from services.runtime.errors import failure_of_rpc_error
from tests.integration.runtime.serving import client_of
from tests.processes import ROOT, ProcessError, ServiceProcess, StartProcess

SAMPLE = "tests.integration.runtime.sample_service"
ENDLESS = b"1000"


def counts(process: ServiceProcess, event: str) -> int:
    return sum(line["event"] == event for line in process.logs())


async def test_the_ready_line_names_service_and_address(start_process: StartProcess) -> None:
    """WEIR-080: one JSON line, and the address answers."""
    process = await start_process(SAMPLE)
    (ready,) = [line for line in process.logs() if line["event"] == "ready"]
    assert ready["service"] == "sample"
    assert ready["address"] == process.address
    async with client_of(process.address) as client, owned_call(client.download(b"2")) as call:
        assert [await call.read(), await call.read()] == [b"0", b"1"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_running_calls_finish_and_new_ones_go_elsewhere(
    start_process: StartProcess, number: signal.Signals
) -> None:
    """WEIR-080, WEIR-068: status 0, every response delivered."""
    process = await start_process(SAMPLE)
    async with client_of(process.address) as client, owned_call(client.download(b"10")) as call:
        assert await call.read() == b"0"
        process.send_signal(number)
        await process.event("draining")
        async with owned_call(client.download(b"1")) as late:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await late.read()
        assert failure_of_rpc_error(caught.value).reason is Reason.SHUTTING_DOWN
        rest = [await call.read() for _ in range(9)]
        assert rest == [str(index).encode() for index in range(1, 10)]
        assert await call.read() is grpc.aio.EOF
    assert await process.exited() == 0
    assert (counts(process, "counted"), counts(process, "drain_cut_short")) == (1, 0)


@pytest.mark.parametrize("second", [None, signal.SIGTERM, signal.SIGINT])
async def test_the_deadline_or_a_second_signal_ends_the_drain(
    start_process: StartProcess, second: signal.Signals | None
) -> None:
    """WEIR-080: what still runs is cancelled, its cleanup runs, and the process ends."""
    deadline = "0.3" if second is None else "600"
    process = await start_process(SAMPLE, SAMPLE_DRAIN_DEADLINE_S=deadline)
    async with client_of(process.address) as client, owned_call(client.download(ENDLESS)) as call:
        assert await call.read() == b"0"
        process.terminate()
        await process.event("draining")
        if second is not None:
            process.send_signal(second)
        assert await process.exited() == 0
    assert counts(process, "count_cancelled") == 1
    (cut,) = [line for line in process.logs() if line["event"] == "drain_cut_short"]
    assert cut["forced"] is (second is not None)


async def test_a_close_that_hangs_is_time_boxed(start_process: StartProcess) -> None:
    """WEIR-065: the process ends although a part of it does not."""
    process = await start_process(SAMPLE, SAMPLE_STUBBORN="1", SAMPLE_CLOSE_TIMEOUT_S="0.2")
    process.terminate()
    assert await process.exited() == 0
    assert counts(process, "cleanup_too_slow") == 1


async def test_a_thread_that_never_ends_does_not_hold_the_exit_up(
    start_process: StartProcess,
) -> None:
    """WEIR-080: a blocked model must not turn a drain into a kill."""
    process = await start_process(SAMPLE, SAMPLE_THREAD="1")
    process.terminate()
    await process.event("stopped")
    assert await process.exited() == 1
    (line,) = [line for line in process.logs() if line["event"] == "threads_do_not_end"]
    assert "endless" in line["threads"]


async def test_a_signal_before_ready_ends_the_start(start_process: StartProcess) -> None:
    """WEIR-080: a model that loads for minutes can be stopped."""
    process = await start_process(SAMPLE, ready_timeout_s=None, SAMPLE_SLOW="1")
    await process.event("starting")
    process.terminate()
    assert await process.exited() == 0
    assert (counts(process, "ready"), counts(process, "stopped_before_ready")) == (0, 1)


async def test_a_start_that_fails_is_logged_without_text_and_ends_with_status_1(
    start_process: StartProcess,
) -> None:
    """WEIR-080, WEIR-070: type and place are told."""
    process = await start_process(SAMPLE, ready_timeout_s=None, SAMPLE_FAIL="secret words")
    assert await process.exited() == 1
    (line,) = [line for line in process.logs() if line["event"] == "process_failed"]
    assert line["error"]["type"] == "RuntimeError"
    assert "secret words" not in process.text()


async def test_a_port_that_is_taken_is_told_with_address_and_reason(
    start_process: StartProcess,
) -> None:
    """WEIR-070: every line of it is one of the log's own, none is gRPC's."""
    first = await start_process(SAMPLE)
    port = first.address.rpartition(":")[2]
    second = await start_process(SAMPLE, ready_timeout_s=None, SAMPLE_PORT=port)
    assert await second.exited() == 1
    (line,) = [line for line in second.logs() if line["event"] == "cannot_listen"]
    assert (line["address"], line["reason"]) == (first.address, "Address already in use")
    assert len(second.logs()) == len(second.text().splitlines())


async def test_wrong_settings_end_with_status_2_and_a_line_for_each(
    start_process: StartProcess,
) -> None:
    """WEIR-050: before anything is started."""
    process = await start_process(
        SAMPLE, ready_timeout_s=None, SAMPLE_PORT="x", SAMPLE_LOG_LEVEL="loud", SAMPLE_PROT="1"
    )
    assert await process.exited() == 2
    problems = [line["problem"] for line in process.logs() if line["event"] == "setting_refused"]
    assert [problem.partition(":")[0] for problem in problems] == [
        "SAMPLE_PORT",
        "SAMPLE_LOG_LEVEL",
        "SAMPLE_PROT",
    ]
    assert counts(process, "starting") == 0


async def test_a_crash_in_a_handler_is_logged_without_the_users_text(
    start_process: StartProcess,
) -> None:
    """WEIR-201, WEIR-070: and the process goes on."""
    process = await start_process(SAMPLE)
    async with client_of(process.address) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.single(b"secret words")
    assert failure_of_rpc_error(caught.value).reason is Reason.INTERNAL
    line = await process.event("call_failed")
    assert line["error"]["type"] == "ValueError"
    assert any("_crash" in frame for frame in line["error"]["frames"])
    assert "secret words" not in process.text()
    assert process.running


async def test_the_fields_of_a_request_are_on_its_log_lines(start_process: StartProcess) -> None:
    """WEIR-070: the ids of the running call, in a real process."""
    process = await start_process(SAMPLE)
    async with client_of(process.address) as client, owned_call(client.download(b"1")) as call:
        assert [await call.read(), await call.read()] == [b"0", grpc.aio.EOF]
    assert (await process.event("counted"))["request_id"] == "r1"


async def test_a_process_that_dies_early_fails_the_test_with_its_log(
    start_process: StartProcess,
) -> None:
    """WEIR-080: what the harness says when a service does not come up."""
    with pytest.raises(ProcessError, match=r"ended with status 2(.|\n)*SAMPLE_PORT"):
        await start_process(SAMPLE, SAMPLE_PORT="x")
    slow = await start_process(SAMPLE, ready_timeout_s=None, SAMPLE_SLOW="1")
    await slow.event("starting")
    with pytest.raises(ProcessError, match=r"wrote no 'ready' line(.|\n)*starting"):
        await slow.ready(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_process_ends_with_the_test_run_that_started_it() -> None:
    """WEIR-080: also when the run is killed and can end nothing itself."""
    program = (
        "import os; from tests.processes import ServiceProcess; "
        f"process = ServiceProcess({SAMPLE!r}, env={{'SAMPLE_SLOW': '1'}}); "
        "process._wait_for('starting', 30); print(process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    assert run.returncode == -signal.SIGKILL
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(run.stdout)).wait(10)


async def get(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    """Return status and body of one HTTP request."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{method} {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
    async with asyncio.timeout(10):
        answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(" ", 2)[1]), answer.partition("\r\n\r\n")[2]


async def test_the_admin_endpoint_serves_metrics_and_health(start_process: StartProcess) -> None:
    """WEIR-073: in a real process, on a port that the log names; readiness follows the drain."""
    process = await start_process(SAMPLE, SAMPLE_ADMIN_PORT="0")
    address = (await process.event("admin_listening"))["address"]
    status, body = await get(address, "/metrics")
    assert status == 200
    assert "process_resident_memory_bytes" in body
    assert await get(address, "/healthz") == (200, "OK\n")
    assert await get(address, "/readyz") == (200, "OK\n")
    async with client_of(process.address) as client, owned_call(client.download(ENDLESS)) as call:
        await call.read()
        process.terminate()
        await process.event("draining")
        assert (await get(address, "/healthz"))[0] == 200
        assert (await get(address, "/readyz"))[0] == 503
    assert await process.exited() == 0


async def test_there_is_no_admin_endpoint_unless_a_port_is_set(
    start_process: StartProcess,
) -> None:
    """WEIR-073: off by default."""
    process = await start_process(SAMPLE)
    assert counts(process, "admin_listening") == 0
