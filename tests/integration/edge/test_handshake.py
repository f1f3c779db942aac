"""The way in: Host, Origin, subprotocols, and plain HTTP beside the sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from tests.integration.edge.client import STREAMED, connected
from tests.integration.edge.suite import http_get, launch_edge, start_edge
from tests.processes import ServiceProcess, StartProcess


async def refused(address: str, **options: Any) -> int:
    """Return the status that refuses a handshake."""
    with pytest.raises(InvalidStatus) as caught:
        async with connected(address, **options):
            pass
    return caught.value.response.status_code


async def test_a_page_of_the_same_origin_may_speak(edge: str) -> None:
    """WEIR-170: and a client that is no page, which has no Origin."""
    async with connected(edge, STREAMED, origin=f"http://{edge}") as client:
        assert (await client.say("Hi.")).audio


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1", "null", "https://localhost:8000"]
)
async def test_a_page_of_another_origin_is_refused_with_403(edge: str, origin: str) -> None:
    """WEIR-170: before any session begins."""
    assert await refused(edge, origin=origin) == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.nip.example"])
async def test_a_foreign_host_is_refused_with_403(edge: str, host: str) -> None:
    """WEIR-170: a name that leads here without our doing is not served."""
    response = await http_get(
        edge,
        "/v1/audio/speech/stream",
        host=host,
        connection="Upgrade",
        upgrade="websocket",
        **{"sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==", "sec-websocket-version": "13"},
    )
    assert response.status == 403
    assert response.json["error"]["code"] == "forbidden"


async def test_listed_hosts_and_origins_are_served(
    start_process: StartProcess, tone: ServiceProcess
) -> None:
    """WEIR-170: the operator's lists open the door and nothing else does."""
    edge = await start_edge(
        start_process,
        tone,
        EDGE_ALLOWED_HOSTS="voice.example",
        EDGE_ALLOWED_ORIGINS="https://app.example",
    )
    async with connected(edge.address, STREAMED, origin="https://app.example") as client:
        assert (await client.say("Hi.")).audio
    assert await refused(edge.address, origin="https://other.example") == 403
    assert (await http_get(edge.address, "/v1/audio/voices", host="voice.example")).status == 200
    assert (await http_get(edge.address, "/v1/audio/voices", host="other.example")).status == 403


@pytest.mark.parametrize(
    ("offered", "selected"),
    [
        (None, None),
        (["weir.v1"], "weir.v1"),
        (["weir.v1", "key.c2VjcmV0"], "weir.v1"),
        (["key.c2VjcmV0", "weir.v1"], "weir.v1"),
    ],
)
async def test_our_subprotocol_is_selected_and_no_other(
    edge: str, offered: list[str] | None, selected: str | None
) -> None:
    """WEIR-171: what else is offered may be a secret."""
    protocols = None if offered is None else [Subprotocol(name) for name in offered]
    async with connected(edge, STREAMED, subprotocols=protocols) as client:
        assert client.socket.subprotocol == selected
        response = client.socket.response
        assert response is not None
        assert "key." not in str(response.headers)
        assert (await client.say("Hi.")).audio


async def test_a_key_alone_is_not_echoed(edge: str) -> None:
    """WEIR-171: the handshake goes on without a subprotocol rather than name the key."""
    async with connected(edge, STREAMED, subprotocols=[Subprotocol("key.c2VjcmV0")]) as client:
        response = client.socket.response
        assert response is not None
        assert "Sec-WebSocket-Protocol" not in response.headers
        assert (await client.say("Hi.")).audio


async def test_nothing_tells_which_software_answers(edge: str) -> None:
    """WEIR-172: neither the handshake nor a page names the server or its version."""
    async with connected(edge, STREAMED) as client:
        response = client.socket.response
        assert response is not None
        assert "Server" not in response.headers
    assert "server" not in (await http_get(edge, "/healthz")).headers


async def test_the_documents_are_served_over_plain_http(edge: str) -> None:
    """IO-INV-300: what can be asked for is known before a session."""
    capabilities = await http_get(edge, "/v1/capabilities")
    assert capabilities.status == 200
    speech = capabilities.json["speech"]
    assert speech["model"] == "tone"
    assert speech["limits"]["idle_timeout_s"] == 30.0
    assert [record["profile"] for record in speech["text_commitment"]] == ["zh_en_special_v1"]
    voices = (await http_get(edge, "/v1/audio/voices")).json
    assert voices["voices"] == ["tone", "high"]
    assert voices["default_voice"] == "tone"


async def test_every_voice_that_is_told_can_be_used(edge: str) -> None:
    """WEIR-140: without a warning, and with another sound."""
    spoken = {}
    for voice in (await http_get(edge, "/v1/audio/voices")).json["voices"]:
        async with connected(edge, {**STREAMED, "voice": voice, "seed": 1}) as client:
            (segment,) = (await client.say("Hi.")).segments
            assert "warnings" not in segment.start
            spoken[voice] = segment.audio
    assert len(set(spoken.values())) == 2


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/healthz", "GET", 200),
        ("/readyz", "GET", 200),
        ("/unknown", "GET", 404),
        ("/v1/capabilities", "POST", 405),
        ("/v1/audio/speech/stream", "GET", 426),
        ("/v1/audio/speech/stream", "POST", 405),
    ],
)
async def test_plain_http_is_answered_with_its_status(
    edge: str, path: str, method: str, status: int
) -> None:
    """WEIR-173: also where only a WebSocket is of use."""
    assert (await http_get(edge, path, method=method)).status == status


async def test_without_a_replica_the_edge_lives_and_says_so(start_process: StartProcess) -> None:
    """WEIR-172: alive, not ready, documents unavailable; a session learns it and stays open."""
    edge = await launch_edge(start_process, "127.0.0.1:1")
    assert (await http_get(edge.address, "/healthz", host="probe.example")).status == 200
    assert (await http_get(edge.address, "/readyz")).status == 503
    unavailable = await http_get(edge.address, "/v1/capabilities")
    assert unavailable.status == 503
    assert unavailable.json["error"]["code"] == "backend_unavailable"
    async with connected(edge.address, STREAMED) as client:
        await client.error("backend_unavailable")
        await client.configure(**STREAMED)
        await client.error("backend_unavailable")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00",  # a TLS client
        b"GET\r\n\r\n",
        b"GET /v1/audio/speech/stream HTTP/1.1\r\nHost: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    ],
    ids=["tls", "line", "long", "many", "body"],
)
async def test_bytes_that_are_no_request_end_their_connection_alone(
    edge: str, edge_process: ServiceProcess, request_bytes: bytes
) -> None:
    """WEIR-211: without a trace in the log above information, and everybody else is served."""
    before = len(edge_process.logs())
    host, _, port = edge.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request_bytes)
    writer.write_eof()
    async with asyncio.timeout(10):
        await reader.read()
    writer.close()
    async with connected(edge, STREAMED) as client:
        assert (await client.say("Hi.")).audio
    assert not [line for line in edge_process.logs()[before:] if line["level"] == "error"]
