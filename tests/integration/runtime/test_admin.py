"""The admin endpoint answers truthfully and bothers nobody."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from services.runtime import admin
from services.runtime.admin import MAX_CONNECTIONS, AdminSettings, serving_admin
from services.runtime.metrics import Metrics

PATIENCE_S = 10.0


def always() -> bool:
    return True


def asked(address: str, request: bytes) -> str:
    """Send a request from a thread, as a scraper does; return all of the answer."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as peer:
        peer.sendall(request)
        received = b""
        while part := peer.recv(65536):
            received += part
    return received.decode()


async def get(address: str, path: str, method: str = "GET") -> str:
    request = f"{method} {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode()
    return await asyncio.to_thread(asked, address, request)


async def test_it_is_off_unless_a_port_is_set() -> None:
    """WEIR-073: the default opens nothing."""
    async with serving_admin(AdminSettings(), Metrics("sample"), always) as address:
        assert address is None


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/metrics", 200),
        ("HEAD", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/../etc/passwd", 404),
        ("POST", "/healthz", 405),
        ("DELETE", "/healthz", 405),
    ],
)
async def test_only_three_pages_can_be_read(method: str, path: str, status: int) -> None:
    """WEIR-073: nothing can be changed, nothing else is there."""
    async with serving_admin(AdminSettings(port=0), Metrics("sample"), always) as address:
        assert address is not None
        answer = await get(address, path, method)
    assert answer.startswith("HTTP/1.0 ")
    assert int(answer.split()[1]) == status


async def test_metrics_are_the_registry_of_the_process() -> None:
    """WEIR-073: what is counted is what is read."""
    metrics = Metrics("sample")
    metrics.counter("calls", "Calls.", {"outcome": ("ok",)}).of(outcome="ok").inc(3)
    async with serving_admin(AdminSettings(port=0), metrics, always) as address:
        assert address is not None
        assert 'weir_sample_calls_total{outcome="ok"} 3.0' in await get(address, "/metrics")


async def test_readiness_is_what_the_process_says() -> None:
    """WEIR-067: each time anew."""
    answers = iter([False, True])
    async with serving_admin(
        AdminSettings(port=0), Metrics("sample"), lambda: next(answers)
    ) as address:
        assert address is not None
        assert "503 Service Unavailable" in await get(address, "/readyz")
        assert "200 OK" in await get(address, "/readyz")


async def test_a_hanging_event_loop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-073: health is 503 when the loop does not answer, and metrics can still be read."""
    monkeypatch.setattr(admin, "LOOP_ANSWER_S", 0.05)
    answers: list[str] = []
    async with serving_admin(AdminSettings(port=0), Metrics("sample"), always) as address:
        assert address is not None
        request = "GET {} HTTP/1.0\r\n\r\n"

        def ask() -> None:
            requests = (request.format(path).encode() for path in ("/healthz", "/metrics"))
            answers.extend(asked(str(address), each) for each in requests)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(PATIENCE_S)  # holds the event loop up, which is what this test is about
    assert "503 Service Unavailable" in answers[0]
    assert "process_resident_memory_bytes" in answers[1]


async def test_peers_that_say_nothing_do_not_keep_others_out() -> None:
    """WEIR-073: connections are bounded; one more is closed, and a place that frees is taken."""
    async with serving_admin(AdminSettings(port=0), Metrics("sample"), always) as address:
        assert address is not None
        host, _, port = address.rpartition(":")
        async with AsyncExitStack() as stack:
            for _ in range(MAX_CONNECTIONS - 1):
                await stack.enter_async_context(silent(host, int(port)))
            assert "200 OK" in await get(address, "/healthz")
            await stack.enter_async_context(silent(host, int(port)))
            await until(lambda: refused(address))
        await until(lambda: not refused(address))


@asynccontextmanager
async def silent(host: str, port: int) -> AsyncIterator[None]:
    """Hold a connection over which nothing is ever sent."""
    _, writer = await asyncio.open_connection(host, port)
    yield
    writer.close()
    await writer.wait_closed()


def refused(address: str) -> bool:
    try:
        return asked(address, b"GET /healthz HTTP/1.0\r\n\r\n") == ""
    except ConnectionError:
        return True


async def until(condition: Callable[[], bool]) -> None:
    """Ask again and again, off the loop, until it holds; each question takes its own time."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(condition):
            pass


async def test_a_port_in_use_ends_the_start() -> None:
    """WEIR-073: a process whose metrics nobody can read says so at once."""
    async with serving_admin(AdminSettings(port=0), Metrics("sample"), always) as address:
        assert address is not None
        taken = AdminSettings(port=int(address.rpartition(":")[2]))
        with pytest.raises(OSError, match="in use"):
            async with serving_admin(taken, Metrics("other"), always):
                pass
