"""What the edge answers before a WebSocket handshake: paths, Host, Origin, subprotocols."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from contracts.errors import Reason, failure
from services.edge.http import SPEECH_PATH, Doorway, select_subprotocol

NO_CONNECTION = cast(ServerConnection, None)  # the doorway decides by the request alone
AWAY = failure(Reason.BACKEND_UNAVAILABLE, "No speech service can be reached.")
HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "voice.example"})


def doorway(
    *,
    hosts: Iterable[str] = HOSTS,
    origins: Iterable[str] = (),
    ready: bool = True,
    document: object = None,
) -> Doorway:
    """A doorway with one document path."""
    return Doorway(
        hosts=frozenset(hosts),
        origins=frozenset(origins),
        websocket_paths=frozenset({SPEECH_PATH}),
        documents={"/v1/capabilities": lambda: {"speech": 1} if document is None else document},
        ready=lambda: ready,
    )


def request(path: str = SPEECH_PATH, *, method: str = "GET", **headers: str) -> Request:
    """A request; `host` and `origin` become its headers."""
    return Request(path, Headers({name.title(): v for name, v in headers.items()}), method)


def answer(door: Doorway, asked: Request) -> Response | None:
    """Let the doorway answer."""
    return door.answer(NO_CONNECTION, asked)


def admitted(door: Doorway, **headers: str) -> bool:
    """Whether the handshake may go on; a refusal must be 403 with the code forbidden."""
    response = answer(door, request(**headers))
    if response is None:
        return True
    assert response.status_code == 403
    assert body(response)["error"]["code"] == "forbidden"
    return False


def body(response: Response) -> Any:
    """Decode a JSON body, whose type must say so."""
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Content-Length"] == str(len(response.body))
    return json.loads(bytes(response.body))


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "LocalHost:8000",
        "127.0.0.1",
        "127.0.0.1:8000",
        "[::1]",
        "[::1]:8000",
        "voice.example",
        "VOICE.example:443",
    ],
)
def test_a_known_host_is_served_whatever_its_port_and_case(host: str) -> None:
    """WEIR-170: names are compared without case and port."""
    assert admitted(doorway(), host=host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8000",
        "127.0.0.2",
        "[::2]:8000",
        "",
        " ",
        ":8000",
        "[::1",
        "::1]",
        "[]",
        "evil.example@localhost",
        "localhost@evil.example",
        "localhost/evil.example",
        "localhost?evil.example",
        "localhost#evil.example",
        "localhost, evil.example",
        "localhost:port",
        "localhost:99999",
        "localhost:8000:8000",
        "http://localhost",
        "loc\xe4lhost",
    ],
)
def test_a_foreign_or_malformed_host_is_refused(host: str) -> None:
    """WEIR-170: what is not the name of this server, in the grammar of Host, does not come in."""
    assert not admitted(doorway(), host=host)


def test_a_request_without_host_is_refused() -> None:
    """WEIR-170: HTTP/1.1 demands a Host, so its absence is no way around the check."""
    assert not admitted(doorway())


@pytest.mark.parametrize("host", ["evil.example", "", "[::1", "x" * 300])
def test_the_star_admits_every_host(host: str) -> None:
    """WEIR-170: an operator behind a proxy may let every name in."""
    assert admitted(doorway(hosts={"*"}), host=host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8000", "localhost:8000"),
        ("HTTP://LOCALHOST:8000", "localhost:8000"),
        ("http://localhost", "localhost"),
        ("http://localhost:80", "localhost"),
        ("http://localhost", "localhost:80"),
        ("https://voice.example", "voice.example"),
        ("https://voice.example:443", "voice.example"),
        ("https://voice.example", "voice.example:443"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("http://[::1]", "[::1]:80"),
        ("https://Voice.Example", "voice.example"),
    ],
)
def test_a_page_of_the_same_origin_is_admitted(origin: str, host: str) -> None:
    """WEIR-170: same host and port, where a scheme's default port may stand or not."""
    assert admitted(doorway(), host=host, origin=origin)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "localhost:8000"),
        ("http://localhost:8001", "localhost:8000"),
        ("http://localhost", "localhost:8000"),
        ("https://localhost", "localhost:80"),
        ("http://localhost:0", "localhost"),
        ("http://127.0.0.1:8000", "localhost:8000"),
        ("http://[::1]:8000", "localhost:8000"),
        ("http://[::1]:8001", "[::1]:8000"),
        ("null", "localhost:8000"),
        ("", "localhost:8000"),
        ("localhost:8000", "localhost:8000"),
        ("file://", "localhost:8000"),
        ("file://localhost:8000", "localhost:8000"),
        ("ws://localhost:8000", "localhost:8000"),
        ("http://", "localhost:8000"),
        ("http://localhost:port", "localhost:8000"),
        ("http://localhost:99999", "localhost"),
        ("http://[::1", "[::1]:8000"),
        ("http://evil.example@localhost:8000", "localhost:8000"),
        ("http://localhost:8000/page", "localhost:8000"),
        ("http://localhost:8000?x", "localhost:8000"),
        ("http://localhost:8000 http://evil.example", "localhost:8000"),
        ("http://localhost.evil.example:8000", "localhost:8000"),
    ],
)
def test_a_page_of_another_origin_is_refused(origin: str, host: str) -> None:
    """WEIR-170: a page of another site, or an Origin that is not one, does not come in."""
    assert not admitted(doorway(), host=host, origin=origin)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://app.example", True),
        ("HTTPS://App.Example", True),
        ("https://app.example:8443", False),
        ("http://app.example", False),
        ("https://app.example.evil", False),
        ("null", False),
    ],
)
def test_a_listed_origin_is_admitted_exactly(origin: str, expected: bool) -> None:
    """WEIR-170: the allow-list holds whole origins, compared without case."""
    door = doorway(origins={"https://app.example"})
    assert admitted(door, host="localhost:8000", origin=origin) is expected


@pytest.mark.parametrize("origin", ["https://any.example", "null", "garbage"])
def test_the_star_admits_every_origin_but_no_foreign_host(origin: str) -> None:
    """WEIR-170: the two lists are independent."""
    door = doorway(origins={"*"})
    assert admitted(door, host="localhost", origin=origin)
    assert not admitted(door, host="evil.example", origin=origin)


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_a_header_given_twice_is_refused(name: str) -> None:
    """WEIR-170: of two values nobody can tell which one counts."""
    headers = Headers({"Host": "localhost:8000"})
    headers["Origin"] = "http://localhost:8000"
    headers[name] = headers[name]
    response = answer(doorway(), Request(SPEECH_PATH, headers))
    assert response is not None
    assert response.status_code == 403


@pytest.mark.parametrize("headers", [{}, {"host": "evil.example"}, {"origin": "http://evil"}])
@pytest.mark.parametrize("ready", [True, False])
def test_health_is_told_to_everybody_and_without_detail(
    headers: dict[str, str], ready: bool
) -> None:
    """WEIR-172: probes know no Host, and learn one word."""
    door = doorway(ready=ready, document=AWAY)
    alive = answer(door, request("/healthz", **headers))
    assert alive is not None
    assert (alive.status_code, bytes(alive.body)) == (200, b"ok\n")
    told = answer(door, request("/readyz?verbose", **headers))
    assert told is not None
    expected = (200, b"ready\n") if ready else (503, b"not ready\n")
    assert (told.status_code, bytes(told.body)) == expected


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/audio/speech", "/v1/capabilities/", "//healthz", "/V1/capabilities"]
)
def test_an_unknown_path_is_not_found(path: str) -> None:
    """WEIR-172: a path stands for itself; nothing of it is echoed."""
    response = answer(doorway(), request(path, host="localhost"))
    assert response is not None
    assert (response.status_code, bytes(response.body)) == (404, b"not found\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/capabilities", "/unknown"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "BREW"])
def test_plain_http_is_read_only(path: str, method: str) -> None:
    """WEIR-173: every method but GET is refused with 405 and the one that is allowed."""
    response = answer(doorway(), request(path, method=method, host="localhost"))
    assert response is not None
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET"


def test_a_document_is_served_as_json_to_the_known_host_alone() -> None:
    """WEIR-170: documents stand behind the same check as sessions."""
    door = doorway()
    served = answer(door, request("/v1/capabilities?x=1", host="localhost"))
    assert served is not None
    assert (served.status_code, body(served)) == (200, {"speech": 1})
    assert served.headers["Cache-Control"] == "no-store"
    refused = answer(door, request("/v1/capabilities", host="evil.example"))
    assert refused is not None
    assert refused.status_code == 403


def test_a_document_that_cannot_be_made_now_is_unavailable() -> None:
    """WEIR-172: while no replica can be reached the reason is told with 503."""
    response = answer(doorway(document=AWAY), request("/v1/capabilities", host="localhost"))
    assert response is not None
    assert response.status_code == 503
    assert body(response)["error"] == {"code": "backend_unavailable", "message": AWAY.message}


@pytest.mark.parametrize(
    ("offered", "selected"),
    [
        ([], None),
        (["weir.v1"], "weir.v1"),
        (["other", "weir.v1"], "weir.v1"),
        (["secret-key", "weir.v1", "weir.v2"], "weir.v1"),
        (["secret-key"], None),
        (["WEIR.V1"], None),
        (["weir.v1 "], None),
    ],
)
def test_only_our_own_subprotocol_is_ever_named(offered: list[str], selected: str | None) -> None:
    """WEIR-171: keys travel among the offered subprotocols, so none of those is echoed."""
    assert select_subprotocol(NO_CONNECTION, [Subprotocol(o) for o in offered]) == selected
