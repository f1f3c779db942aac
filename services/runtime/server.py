"""A gRPC server that tells the truth about itself and ends without losing calls.

Owns: binding, the standard health and reflection services, counting of calls, refusing new calls
while draining. Does not own: its options (`transport`), signals and deadlines (`lifecycle`), or the
services it carries. Enforces: WEIR-067 (health is SERVING only when ready and not draining),
WEIR-068 (a draining server refuses new calls with SHUTTING_DOWN and finishes running ones).
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from contracts.errors import Reason, failure
from services.runtime.errors import Context, abort, error_scope
from services.runtime.interceptor import CallScope, ScopeInterceptor
from services.runtime.logging import get_logger
from services.runtime.transport import ServerSettings, server_options

_log = get_logger(__name__)

_STANDARD = "/grpc."
"""Methods of gRPC's own services, which answer while draining and are not waited for."""


class GrpcServer:
    """A server with health and reflection for `services`, the full names of what it carries.

    Add servicers to `server` before `start`. `scopes` run inside error handling and drain, around
    every call.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        services: Sequence[str],
        scopes: Sequence[CallScope] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._settings = settings
        self._services = tuple(services)
        self._credentials = credentials
        self._calls = _Calls()
        self._health = health.aio.HealthServicer()
        self._draining = False
        self.server = grpc.aio.server(
            interceptors=[ScopeInterceptor(error_scope, self._calls.scope, *scopes)],
            options=server_options(settings),
        )

    @property
    def running_calls(self) -> int:
        """Calls that are in a handler now, health and reflection aside."""
        return self._calls.running

    async def start(self) -> str:
        """Listen, with health NOT_SERVING; return `host:port` as a client on this machine dials it.

        Raises OSError when the address cannot be had, after the log has told why.
        """
        await self._set_health(serving=False)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)
        names = (*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self.server)
        port = await self._listen(_address(self._settings.host, self._settings.port))
        await self.server.start()
        return _address(_dialled(self._settings.host), port)

    async def set_ready(self, ready: bool) -> None:
        """Tell through health whether calls can be served. Without effect while draining."""
        if not self._draining:
            await self._set_health(serving=ready)

    async def drain(self) -> None:
        """Refuse new calls, and return when the running ones have ended."""
        # WEIR-067, WEIR-068: health first, so that balancers look elsewhere.
        self._draining = True
        await self._set_health(serving=False)
        await self._calls.drain()

    async def close(self) -> None:
        """Stop listening, cancel what still runs and wait for it. May be called again."""
        await self.server.stop(None)

    async def _listen(self, address: str) -> int:
        try:
            return self._bind(address)
        except RuntimeError as error:
            reason = await _why_not(self._settings.host.strip("[]"), self._settings.port)
            _log.error("cannot_listen", address=address, reason=reason)
            raise OSError(f"cannot listen on {address}: {reason}") from error

    def _bind(self, address: str) -> int:
        if self._credentials is None:
            return self.server.add_insecure_port(address)
        return self.server.add_secure_port(address, self._credentials)

    async def _set_health(self, *, serving: bool) -> None:
        response = health_pb2.HealthCheckResponse
        status = response.SERVING if serving else response.NOT_SERVING
        for name in ("", *self._services):
            await self._health.set(name, status)


def build_server(
    settings: ServerSettings,
    *,
    services: Sequence[str],
    scopes: Sequence[CallScope] = (),
    credentials: grpc.ServerCredentials | None = None,
) -> GrpcServer:
    """Return a server that is not started yet; see `GrpcServer`."""
    return GrpcServer(settings, services=services, scopes=scopes, credentials=credentials)


class _Calls:
    """Counts running calls and refuses new ones while draining."""

    def __init__(self) -> None:
        self.running = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def scope(self, method: str, context: Context) -> AsyncIterator[None]:
        if method.startswith(_STANDARD):
            yield
            return
        if self._draining:
            await abort(
                context,
                failure(Reason.SHUTTING_DOWN, "This replica is shutting down; call another one."),
            )
        self.running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()

    async def drain(self) -> None:
        self._draining = True
        await self._idle.wait()


async def _why_not(host: str, port: int) -> str:
    """Say why `port` of `host` cannot be had: gRPC keeps the reason to itself."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        return "the host has no address"
    for family, kind, protocol, _, place in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
        except OSError as error:
            return os.strerror(error.errno) if error.errno else "not an address of this machine"
    return "unknown"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _dialled(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}.get(host, host.strip("[]"))
