"""The health probe of the images, against real servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import grpc.aio
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from tests.processes import ROOT

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def probe(*arguments: str) -> int:
    """Run the probe as a container would; return its exit status."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "deploy" / "probe.py"),
        *arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return await process.wait()


@pytest.fixture
async def grpc_health() -> AsyncIterator[tuple[str, health.aio.HealthServicer]]:
    """A gRPC server with the standard health service, and its address."""
    server, servicer = grpc.aio.server(), health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}", servicer
    await server.stop(None)


@pytest.mark.parametrize(("status", "expected"), [(SERVING, 0), (NOT_SERVING, 1)])
async def test_a_grpc_service_is_healthy_when_it_says_serving(
    grpc_health: tuple[str, health.aio.HealthServicer], status: int, expected: int
) -> None:
    """WEIR-383: the container's health is the service's own word."""
    address, servicer = grpc_health
    await servicer.set("", status)
    assert await probe("grpc", address) == expected


@pytest.mark.parametrize(
    ("line", "expected"), [("200 OK", 0), ("503 Service Unavailable", 1), ("404 Not Found", 1)]
)
async def test_an_http_service_is_healthy_when_it_answers_200(line: str, expected: int) -> None:
    """WEIR-383: every other status is unhealthy."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        assert await probe("http", f"{host}:{port}", "/readyz") == expected


@pytest.mark.parametrize("kind", [("grpc",), ("http", "/readyz")])
async def test_nobody_there_is_unhealthy(kind: tuple[str, ...]) -> None:
    """WEIR-383: a probe that cannot connect fails."""
    free = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port = free.sockets[0].getsockname()[1]
    free.close()
    await free.wait_closed()
    assert await probe(kind[0], f"127.0.0.1:{port}", *kind[1:]) == 1


@pytest.mark.parametrize("arguments", [(), ("tcp", "127.0.0.1:1"), ("http", "127.0.0.1:1")])
async def test_a_wrong_command_line_is_told_apart(arguments: tuple[str, ...]) -> None:
    """WEIR-383: a mistake in a Dockerfile does not look like an unhealthy service."""
    assert await probe(*arguments) == 2
