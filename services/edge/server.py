"""The edge process: one port for WebSocket sessions and plain HTTP.

Owns: listening, admission of connections, draining all sessions. Does not own: a session (its
driver), what stands at a path (`endpoints`, `documents`), signals (`services.runtime.lifecycle`).
Enforces: WEIR-160 (sessions are bounded), WEIR-181 (a drain lets what is being spoken or shown end,
and then closes with 1012).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Mapping
from typing import cast

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from contracts.errors import Failure
from services.edge.admission import FULL, SHUTTING_DOWN
from services.edge.endpoints import Connection, Endpoint
from services.edge.http import SUBPROTOCOL, Document, Doorway, select_subprotocol
from services.edge.settings import EdgeSettings
from services.edge.stall import GuardedConnection
from services.runtime.logging import get_logger

_LOGGER = get_logger(__name__)

_WRITE_LIMIT_BYTES = 32 * 1024
_UNSENT_BYTES = 32 * 1024
_READ_QUEUE_FRAMES = 4


class EdgeServer:
    """Serves sessions between `start` and `close`; `services.runtime.lifecycle` drives it."""

    def __init__(
        self,
        settings: EdgeSettings,
        endpoints: Mapping[str, Endpoint],
        documents: Mapping[str, Document],
    ) -> None:
        """Both by their path."""
        self._settings = settings
        self._endpoints = endpoints
        self._documents = documents
        self._connections: set[Connection] = set()
        self._server: Server | None = None
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def ready(self) -> bool:
        """True when new sessions can be served, be it of one kind only.

        A service that is away, or not deployed, must not take the other one down with the edge.
        """
        return not self._draining and any(
            endpoint.backend.capabilities() is not None for endpoint in self._endpoints.values()
        )

    async def start(self) -> str:
        """Listen; return `host:port` as a client on this machine dials it. Raises OSError."""
        settings = self._settings
        for endpoint in self._endpoints.values():
            endpoint.backend.start()
        # The library reports every handshake and every end of a connection; ours are in `driver`.
        logging.getLogger("websockets").setLevel(logging.WARNING)
        try:
            self._server = await self._listen()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "not an address of this machine"
            address = f"{settings.host}:{settings.port}"
            _LOGGER.error("cannot_listen", address=address, reason=reason)
            raise
        return self._address()

    async def _listen(self) -> Server:
        settings, connection = self._settings, self._settings.connection
        return await serve(
            self._handle,
            settings.host.strip("[]"),
            settings.port,
            process_request=self._doorway().answer,
            select_subprotocol=select_subprotocol,
            subprotocols=[SUBPROTOCOL],
            create_connection=GuardedConnection,
            compression=None,  # costs 41 KiB a connection, and media does not compress
            max_size=connection.max_frame_bytes,
            max_queue=_READ_QUEUE_FRAMES,
            write_limit=_WRITE_LIMIT_BYTES,
            open_timeout=connection.handshake_timeout_s,
            close_timeout=settings.drain.close_timeout_s,
            ping_interval=connection.ping_interval_s,
            ping_timeout=None,  # a pong late behind queued audio is no fault: `stall` judges
            server_header=None,
        )

    async def drain(self) -> None:
        """Take no new connections; return when every session has ended."""
        self._draining = True
        if self._server is not None:
            self._server.close(close_connections=False)
        for connection in list(self._connections):
            connection.shut_down(final=False)
        await self._empty.wait()

    async def close(self) -> None:
        """End what is left and free everything."""
        self._draining = True
        for connection in list(self._connections):
            connection.shut_down(final=True)
        await self._within(1 / 2, self._empty.wait())
        for connection in list(self._connections):
            connection.abort()  # a peer that reads nothing would hold the process up
        if self._server is not None:
            self._server.close()
            await self._within(1 / 4, self._server.wait_closed())
        for endpoint in self._endpoints.values():
            await endpoint.backend.aclose()

    async def _within(self, share: float, end: Awaitable[object]) -> None:
        """Wait for `end`, at most for a share of the time that closing may take."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(share * self._settings.drain.close_timeout_s):
                await end

    async def _handle(self, websocket: ServerConnection) -> None:
        assert websocket.request is not None  # the handshake is over
        endpoint = self._endpoints[websocket.request.path.partition("?")[0]]  # the doorway saw it
        if self._draining:  # its handshake was under way when the drain began
            await self._refuse(websocket, endpoint, SHUTTING_DOWN)
            return
        if len(self._connections) >= self._settings.connection.max_sessions:
            await self._refuse(websocket, endpoint, FULL)
            return
        assert isinstance(websocket, GuardedConnection)  # `start` has them made
        _tune(websocket, self._settings.connection.send_deadline_s)
        connection = endpoint.connect(websocket)
        self._connections.add(connection)
        self._empty.clear()
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._empty.set()

    async def _refuse(
        self, websocket: ServerConnection, endpoint: Endpoint, cause: Failure
    ) -> None:
        # WEIR-160: the refusal itself is bounded by the close timeout of the library.
        endpoint.connections.session_refused()
        with contextlib.suppress(ConnectionClosed):
            await websocket.send(endpoint.refusal(cause))
            await websocket.close(cause.rule.close_code or 1013, cause.websocket_code)

    def _doorway(self) -> Doorway:
        return Doorway(
            hosts=self._settings.hosts(),
            origins=self._settings.origins(),
            websocket_paths=frozenset(self._endpoints),
            documents=self._documents,
            ready=lambda: self.ready,
        )

    def _address(self) -> str:
        assert self._server is not None
        host, port = next(iter(self._server.sockets)).getsockname()[:2]
        dialled = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"[{dialled}]:{port}" if ":" in dialled else f"{dialled}:{port}"


def _tune(websocket: ServerConnection, send_deadline_s: float) -> None:
    """Let the kernel drop a peer that has vanished, and hold little for one that reads slowly."""
    raw = cast("socket.socket | None", websocket.transport.get_extra_info("socket"))
    if raw is None:
        return
    options = {
        "TCP_USER_TIMEOUT": int(2000 * send_deadline_s),
        # WEIR-161: otherwise megabytes wait here, a third of which must drain before anybody sees
        # that a slow peer moves.
        "TCP_NOTSENT_LOWAT": _UNSENT_BYTES,
    }
    for name, value in options.items():
        if hasattr(socket, name):
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
