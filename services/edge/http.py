"""What the edge answers before, or instead of, a WebSocket handshake.

Owns: the paths of plain HTTP, the checks of Host and Origin, the choice of a subprotocol. Does not
own: the sessions, TLS. Enforces: WEIR-170 (a foreign Host or Origin is refused with 403), WEIR-171
(what a client offers as a subprotocol is never echoed, only `weir.v1` is chosen), WEIR-172 (health
tells no detail), WEIR-173 (plain HTTP is read-only).
"""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from contracts.errors import Failure, Reason, failure

SUBPROTOCOL = Subprotocol("weir.v1")
SPEECH_PATH = "/v1/audio/speech/stream"
VIDEO_PATH = "/v1/realtime/video"
_DEFAULT_PORTS = {"http": 80, "https": 443}

Document = Callable[[], object | Failure]
"""Makes the JSON document of a path, or tells why there is none now."""


@dataclass(frozen=True, slots=True)
class Doorway:
    """Who may come in, and what stands at which path. Hosts and origins are in lower case.

    `hosts` are names without a port; `*` admits every Host. `origins` are `scheme://host[:port]`;
    `*` admits every Origin.
    """

    hosts: frozenset[str]
    origins: frozenset[str]
    websocket_paths: frozenset[str]
    documents: Mapping[str, Document]
    ready: Callable[[], bool]

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request, or return None to let the WebSocket handshake go on."""
        path = request.path.partition("?")[0]
        if request.method != "GET" and path not in self.websocket_paths:
            # WEIR-173: the handshake itself refuses other methods on its own paths.
            return _text(http.HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed\n", Allow="GET")
        if path == "/healthz":
            return _text(http.HTTPStatus.OK, "ok\n")
        if path == "/readyz":
            ready = self.ready()
            status = http.HTTPStatus.OK if ready else http.HTTPStatus.SERVICE_UNAVAILABLE
            return _text(status, "ready\n" if ready else "not ready\n")
        refusal = self._refusal(request.headers)
        if refusal is not None:
            return _failed(refusal, http.HTTPStatus.FORBIDDEN)
        if path in self.websocket_paths:
            return None
        document = self.documents.get(path)
        if document is None:
            return _text(http.HTTPStatus.NOT_FOUND, "not found\n")
        made = document()
        if isinstance(made, Failure):
            return _failed(made, http.HTTPStatus.SERVICE_UNAVAILABLE)
        return _json(http.HTTPStatus.OK, made)

    def _refusal(self, headers: Headers) -> Failure | None:
        # WEIR-170: a page of another site must not speak through the visitor's browser, nor reach
        # a local server through a name of its own (DNS rebinding).
        try:
            host, origin = headers.get("Host", ""), headers.get("Origin")
        except MultipleValuesError:
            return failure(Reason.FORBIDDEN, "Host and Origin may be given once.")
        if "*" not in self.hosts and _host_name(host) not in self.hosts:
            return failure(Reason.FORBIDDEN, "This Host is not served; see EDGE_ALLOWED_HOSTS.")
        if origin is None or "*" in self.origins or origin.lower() in self.origins:
            return None
        if _same_origin(origin, host):
            return None
        return failure(Reason.FORBIDDEN, "This Origin is not admitted; see EDGE_ALLOWED_ORIGINS.")


def select_subprotocol(
    connection: ServerConnection, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    """Choose `weir.v1` when it is offered; anything else is never echoed (WEIR-171)."""
    return SUBPROTOCOL if SUBPROTOCOL in offered else None


def _host_name(host: str) -> str:
    authority = _authority(host)
    return authority[0] if authority else ""


def _same_origin(origin: str, host: str) -> bool:
    scheme, separator, place = origin.partition("://")
    default = _DEFAULT_PORTS.get(scheme.lower())
    ours, theirs = _authority(host), _authority(place)
    if not separator or default is None or ours is None or theirs is None:
        return False
    ports = [default if port is None else port for _, port in (ours, theirs)]
    return ours[0] == theirs[0] and ports[0] == ports[1]


def _authority(text: str) -> tuple[str, int | None] | None:
    """Split `name[:port]`; None for anything else, user names, paths and queries included."""
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (name, port) if name and parts.netloc == text and "@" not in text else None


def _failed(cause: Failure, otherwise: http.HTTPStatus) -> Response:
    body = {"error": {"code": cause.websocket_code, "message": cause.message}}
    return _json(http.HTTPStatus(cause.rule.http_status or otherwise), body)


def _json(status: http.HTTPStatus, body: object) -> Response:
    return _response(status, "application/json", msgspec.json.encode(body))


def _text(status: http.HTTPStatus, body: str, **extra: str) -> Response:
    return _response(status, "text/plain; charset=utf-8", body.encode(), **extra)


def _response(status: http.HTTPStatus, content_type: str, body: bytes, **extra: str) -> Response:
    headers = Headers(
        {
            **extra,
            "Connection": "close",
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
    )
    return Response(status.value, status.phrase, headers, body)
