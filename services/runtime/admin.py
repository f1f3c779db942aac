"""The admin endpoint of a process: /metrics, /healthz, /readyz over plain HTTP.

Owns: the HTTP server and its thread, so that neither a scrape nor a slow reader touches the event
loop. Does not own: what is measured (`metrics`), or the public endpoints of the edge. Enforces:
WEIR-073 (the endpoint is off unless a port is set, and on loopback unless a host is set).
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from services.runtime.logging import get_logger
from services.runtime.metrics import Metrics
from services.runtime.settings import setting
from services.runtime.tasks import finish

MAX_CONNECTIONS = 8
SOCKET_TIMEOUT_S = 5.0
LOOP_ANSWER_S = 1.0
"""Time the event loop has to answer before the process counts as hanging."""
CLOSE_TIMEOUT_S = 3.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """Where metrics and health can be read."""

    host: str = setting(
        "*_ADMIN_HOST",
        "127.0.0.1",
        "Address that the admin endpoint listens on. It has no key: never a public address.",
    )
    port: int | None = setting(
        "*_ADMIN_PORT",
        None,
        "Port of the admin endpoint (/metrics, /healthz, /readyz); unset: there is none; 0: the "
        "system chooses one, which the log names.",
        minimum=0,
        maximum=65535,
    )


@asynccontextmanager
async def serving_admin(
    settings: AdminSettings, metrics: Metrics, ready: Callable[[], bool]
) -> AsyncIterator[str | None]:
    """Serve the admin endpoint for the length of the scope; yield `host:port`, None when it is off.

    /metrics is the registry in Prometheus' text form. /healthz is 200 when the event loop answers
    within LOOP_ANSWER_S, else 503. /readyz is 200 when `ready()`, else 503; `ready` is called from
    another thread and must only look at a value. Raises OSError when the address cannot be had.
    """
    if settings.port is None:  # WEIR-073
        yield None
        return
    app = _Application(metrics, ready, asyncio.get_running_loop())
    server = _listen(settings.host, settings.port, app)
    address = f"{settings.host}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="admin", args=(0.1,), daemon=True)
    thread.start()
    _log.info("admin_listening", address=address)
    try:
        yield address
    finally:
        await finish(
            asyncio.to_thread(_stop, server, thread), timeout_s=CLOSE_TIMEOUT_S, what="admin"
        )


class _Application:
    """The WSGI application."""

    def __init__(
        self, metrics: Metrics, ready: Callable[[], bool], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._metrics = make_wsgi_app(metrics.registry)
        self._ready = ready
        self._loop = loop

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _answer(start_response, "405 Method Not Allowed")
        if path == "/metrics":
            scraped: Iterable[bytes] = self._metrics(environ, start_response)
            return scraped
        if path == "/healthz":
            return _answer(start_response, _health(self._loop_answers()))
        if path == "/readyz":
            return _answer(start_response, _health(self._ready()))
        return _answer(start_response, "404 Not Found")

    def _loop_answers(self) -> bool:
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # the loop is closed
            return False
        return answered.wait(LOOP_ANSWER_S)


class _Server(ThreadingMixIn, WSGIServer):
    """One thread for each connection, a bounded count of them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(*args, **kwargs)

    def server_bind(self) -> None:
        """Bind without asking DNS for our own name, which could take long."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log without the peer's bytes; a peer that goes away is no error of ours."""
        _log.debug("admin_request_failed")


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = SOCKET_TIMEOUT_S

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a scrape every few seconds is not an event."""


def _listen(host: str, port: int, app: _Application) -> _Server:
    kind = _Server6 if ":" in host else _Server
    return make_server(host, port, app, server_class=kind, handler_class=_Handler)


def _stop(server: _Server, thread: threading.Thread) -> None:
    server.shutdown()
    thread.join()
    server.server_close()


def _health(good: bool) -> str:
    return "200 OK" if good else "503 Service Unavailable"


def _answer(start_response: Any, status: str) -> Iterable[bytes]:
    body = f"{status[4:]}\n".encode()
    start_response(
        status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    )
    return (body,)
