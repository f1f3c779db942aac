"""A server of one made-up service with all four kinds of method, carrying plain bytes.

Owns: what the runtime's integration tests call. A handler is any callable that `grpc.aio` takes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from services.runtime.channel import open_channel
from services.runtime.interceptor import CallScope
from services.runtime.server import GrpcServer, build_server
from services.runtime.transport import ChannelSettings, ServerSettings

SERVICE = "sample.v1.SampleService"
PATIENCE_S = 10.0
"""Longest wait for something that must come."""

_MAKERS = {
    "Single": grpc.unary_unary_rpc_method_handler,
    "Download": grpc.unary_stream_rpc_method_handler,
    "Upload": grpc.stream_unary_rpc_method_handler,
    "Chat": grpc.stream_stream_rpc_method_handler,
}
Handlers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Client:
    """Calls the service's methods over one channel."""

    channel: grpc.aio.Channel

    def single(self, request: bytes = b"") -> Any:
        method: Any = self.channel.unary_unary(f"/{SERVICE}/Single")
        return method(request, timeout=PATIENCE_S)

    def download(self, request: bytes = b"") -> Any:
        method: Any = self.channel.unary_stream(f"/{SERVICE}/Download")
        return method(request, timeout=PATIENCE_S)

    def upload(self) -> Any:
        return self.channel.stream_unary(f"/{SERVICE}/Upload")(timeout=PATIENCE_S)

    def chat(self) -> Any:
        return self.channel.stream_stream(f"/{SERVICE}/Chat")(timeout=PATIENCE_S)


def add_handlers(
    server: grpc.aio.Server, handlers: Handlers, decode: Callable[[bytes], Any] | None = None
) -> None:
    """Carry `handlers`, a mapping of Single, Download, Upload and Chat to behaviours.

    They get each request as `decode` makes it.
    """
    made: dict[str, Any] = {
        name: _MAKERS[name](behaviour, request_deserializer=decode)
        for name, behaviour in handlers.items()
    }
    generic = grpc.method_handlers_generic_handler(SERVICE, made)
    server.add_generic_rpc_handlers((generic,))


@asynccontextmanager
async def serving(
    handlers: Handlers,
    settings: ServerSettings | None = None,
    scopes: Sequence[CallScope] = (),
    decode: Callable[[bytes], Any] | None = None,
) -> AsyncIterator[tuple[GrpcServer, str]]:
    """Serve `handlers` with our server; yield it and its address."""
    built = build_server(settings or ServerSettings(), services=[SERVICE], scopes=scopes)
    add_handlers(built.server, handlers, decode)
    address = await built.start()
    await built.set_ready(True)
    try:
        yield built, address
    finally:
        await built.close()


@asynccontextmanager
async def serving_bare(handlers: Handlers) -> AsyncIterator[str]:
    """Serve `handlers` with a server as gRPC makes it, none of our options; yield its address."""
    server = grpc.aio.server()
    add_handlers(server, handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def client_of(address: str, settings: ChannelSettings | None = None) -> AsyncIterator[Client]:
    """Open one of our channels to `address`."""
    async with open_channel(address, settings) as channel:
        yield Client(channel)


@asynccontextmanager
async def bare_client_of(address: str) -> AsyncIterator[Client]:
    """Open a channel as gRPC makes it, none of our options."""
    async with grpc.aio.insecure_channel(address) as channel:
        yield Client(channel)
