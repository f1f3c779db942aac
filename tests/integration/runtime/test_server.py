"""What a server says about itself, what its calls end with, and how it goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from contracts.errors import (
    INTERNAL_MESSAGE,
    Failure,
    FieldViolation,
    GrpcCode,
    Reason,
    WeirError,
    failure,
)
from services.runtime.channel import open_channel, owned_call
from services.runtime.errors import abort, failure_of_rpc_error
from services.runtime.server import build_server
from services.runtime.transport import ServerSettings
from tests.integration.runtime.serving import (
    PATIENCE_S,
    SERVICE,
    Client,
    client_of,
    serving,
)

SECRET = "the words of a user"
REFUSED = failure(
    Reason.INVALID_MESSAGE,
    "The request is refused.",
    violations=(FieldViolation("output.channels", "Is 1."),),
)
BUSY = failure(Reason.OVERLOADED, "Every place is taken.", retry_after_ms=250)
KINDS = ("Single", "Download", "Upload", "Chat")


def failing(kind: str, error: BaseException, *, after: int = 0) -> dict[str, Any]:
    """Return a handler of this kind that raises `error`, after as many responses."""

    async def single(request: Any, context: Any) -> bytes:
        raise error

    async def stream(request: Any, context: Any) -> AsyncIterator[bytes]:
        for _ in range(after):
            yield b"response"
        raise error

    return {kind: stream if kind in ("Download", "Chat") else single}


async def outcome(client: Client, kind: str) -> tuple[list[bytes], Failure]:
    """Call a method that fails; return its responses and what the failure means."""
    received: list[bytes] = []
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await called(client, kind, received)
    return received, failure_of_rpc_error(caught.value)


async def called(client: Client, kind: str, received: list[bytes]) -> None:
    if kind in ("Single", "Upload"):
        await (client.single() if kind == "Single" else client.upload())
        return
    async with owned_call(client.download() if kind == "Download" else client.chat()) as call:
        while (response := await call.read()) is not grpc.aio.EOF:
            received.append(response)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failed", [REFUSED, BUSY], ids=["refused", "busy"])
async def test_a_failure_raised_by_a_handler_reaches_the_caller_whole(
    kind: str, failed: Failure
) -> None:
    """WEIR-203: reason, code, message, fields and delay, for each kind of method."""
    handlers = failing(kind, WeirError(failed))
    async with serving(handlers) as (_, address), client_of(address) as client:
        assert await outcome(client, kind) == ([], failed)


async def test_a_failure_in_the_middle_of_a_stream_reaches_the_caller() -> None:
    """WEIR-203: what was sent before it arrives first."""
    handlers = failing("Download", WeirError(BUSY), after=2)
    async with serving(handlers) as (_, address), client_of(address) as client:
        assert await outcome(client, "Download") == ([b"response"] * 2, BUSY)


@pytest.mark.parametrize("kind", KINDS)
async def test_any_other_exception_becomes_internal_without_its_text(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """WEIR-201: the caller gets a fixed sentence, the log gets the exception."""
    handlers = failing(kind, ValueError(SECRET))
    async with serving(handlers) as (_, address), client_of(address) as client:
        _, failed = await outcome(client, kind)
    assert failed == Failure(Reason.INTERNAL, GrpcCode.INTERNAL, INTERNAL_MESSAGE)
    (record,) = [record for record in caplog.records if record.message == "call_failed"]
    fields = record.__dict__["weir_fields"]
    assert fields["method"] == f"/{SERVICE}/{kind}"
    assert isinstance(fields["error"], ValueError)


async def test_a_handler_may_abort_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    """WEIR-203: an abort passes the error handling untouched and is no error of the log."""

    async def single(request: bytes, context: Any) -> bytes:
        await abort(context, BUSY)

    async with serving({"Single": single}) as (_, address), client_of(address) as client:
        assert (await outcome(client, "Single"))[1] == BUSY
    assert not caplog.records


@pytest.mark.parametrize("kind", ["Download", "Chat"])
async def test_a_cancelled_call_is_never_converted(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """WEIR-204: the handler and every scope see CancelledError, and the generator is closed."""
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def stream(request: Any, context: Any) -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.put_nowait("handler")
            raise

    @asynccontextmanager
    async def scope(method: str, context: Any) -> AsyncIterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            seen.put_nowait("scope")
            raise

    async with (
        serving({kind: stream}, scopes=[scope]) as (_, address),
        client_of(address) as client,
    ):
        call = client.download() if kind == "Download" else client.chat()
        async with owned_call(call):
            assert await call.read() == b"first"
        async with asyncio.timeout(PATIENCE_S):
            assert [await seen.get(), await seen.get()] == ["handler", "scope"]
    assert not caplog.records


async def test_a_call_cancelled_while_its_handler_writes_closes_the_generator() -> None:
    """WEIR-064: within the call and its scopes, not some time later by the collector."""
    ended: asyncio.Queue[str] = asyncio.Queue()

    async def stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(10_000)
        finally:
            ended.put_nowait("generator")

    @asynccontextmanager
    async def scope(method: str, context: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            ended.put_nowait("scope")

    async with (
        serving({"Download": stream}, scopes=[scope]) as (_, address),
        client_of(address) as client,
    ):
        async with owned_call(client.download()) as call:
            await call.read()
        async with asyncio.timeout(PATIENCE_S):
            assert [await ended.get(), await ended.get()] == ["generator", "scope"]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_handler_works_within_scopes(kind: str) -> None:
    """WEIR-064: also handlers that read and write through the context themselves."""
    entered: list[str] = []

    @asynccontextmanager
    async def scope(method: str, context: Any) -> AsyncIterator[None]:
        entered.append(method)
        yield
        entered.append("left")

    async def single(request: bytes, context: Any) -> bytes:
        return request

    async def upload(requests: AsyncIterator[bytes], context: Any) -> bytes:
        return b"".join([request async for request in requests])

    async def download(request: bytes, context: Any) -> None:
        for index in range(3):
            await context.write(request[index : index + 1])

    async def chat(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    handlers = {"Single": single, "Upload": upload, "Download": download, "Chat": chat}
    async with serving(handlers, scopes=[scope]) as (_, address), client_of(address) as client:
        if kind == "Single":
            assert await client.single(b"abc") == b"abc"
        elif kind == "Download":
            assert [part async for part in client.download(b"abc")] == [b"a", b"b", b"c"]
        else:
            call = client.upload() if kind == "Upload" else client.chat()
            for part in (b"a", b"b", b"c"):
                await call.write(part)
            await call.done_writing()
            answer = await call if kind == "Upload" else [part async for part in call]
            assert answer == (b"abc" if kind == "Upload" else [b"a", b"b", b"c"])
    assert entered == [f"/{SERVICE}/{kind}", "left"]


@pytest.mark.parametrize("by_context", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_cannot_be_decoded_is_refused_without_the_decoders_text(
    kind: str, by_context: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """WEIR-201: for one message and for a stream, however it is read; no error of the log."""
    received: list[str] = []

    def decode(data: bytes) -> str:
        if data == b"bad":
            raise UnicodeError(SECRET)
        return data.decode()

    async def single(request: str, context: Any) -> bytes:
        received.append(request)
        return b""

    async def upload(requests: AsyncIterator[str], context: Any) -> bytes:
        if by_context:
            while (request := await context.read()) is not grpc.aio.EOF:
                received.append(request)
        else:
            async for request in requests:
                received.append(request)  # noqa: PERF401  # what came before a failure counts
        return b""

    async def download(request: str, context: Any) -> AsyncIterator[bytes]:
        received.append(request)
        yield b""

    async def chat(requests: AsyncIterator[str], context: Any) -> AsyncIterator[bytes]:
        yield await upload(requests, context)

    handlers = {"Single": single, "Upload": upload, "Download": download, "Chat": chat}
    streams = kind in ("Upload", "Chat")
    async with serving(handlers, decode=decode) as (_, address), client_of(address) as client:
        call = {
            "Single": lambda: client.single(b"bad"),
            "Download": lambda: client.download(b"bad"),
            "Upload": client.upload,
            "Chat": client.chat,
        }[kind]()
        if streams:
            await call.write(b"good")
            await call.write(b"bad")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await (call if kind in ("Single", "Upload") else call.read())
        failed = failure_of_rpc_error(caught.value)
    assert (failed.reason, failed.code) == (Reason.INVALID_MESSAGE, GrpcCode.INVALID_ARGUMENT)
    assert failed.message == "The request message cannot be decoded."
    assert received == (["good"] if streams else [])
    assert not caplog.records


async def test_a_method_that_is_not_served_falls_back_by_its_code() -> None:
    """WEIR-202: a status that gRPC makes by itself still means something."""
    async with serving({}) as (_, address), client_of(address) as client:
        _, failed = await outcome(client, "Single")
    assert (failed.reason, failed.code) == (Reason.UNSUPPORTED_OPTION, GrpcCode.UNIMPLEMENTED)


async def test_a_backend_that_is_away_is_unavailable() -> None:
    """WEIR-202: a refused connection means BACKEND_UNAVAILABLE and shows no foreign text."""
    async with serving({}) as (_, address):
        pass
    async with client_of(address) as client:
        _, failed = await outcome(client, "Single")
    assert (failed.reason, failed.code) == (Reason.BACKEND_UNAVAILABLE, GrpcCode.UNAVAILABLE)
    assert "127.0.0.1" not in failed.message


async def health_of(address: str, service: str) -> int:
    async with open_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=service)
        return int((await stub.Check(request, timeout=PATIENCE_S)).status)


@pytest.mark.parametrize("service", ["", SERVICE])
async def test_health_is_serving_only_when_ready_and_not_draining(service: str) -> None:
    """WEIR-067: for the whole server and for each service it carries."""
    serving_, not_serving = 1, 2
    built = build_server(ServerSettings(), services=[SERVICE])
    address = await built.start()
    assert await health_of(address, service) == not_serving
    await built.set_ready(True)
    assert await health_of(address, service) == serving_
    await built.set_ready(False)
    assert await health_of(address, service) == not_serving
    await built.set_ready(True)
    await built.drain()
    assert await health_of(address, service) == not_serving
    await built.set_ready(True)
    assert await health_of(address, service) == not_serving
    await built.close()


async def test_a_watcher_of_health_is_told_and_does_not_hold_the_drain_up() -> None:
    """WEIR-067, WEIR-068: balancers that watch hear of the drain; their stream is no work."""
    async with serving({}) as (built, address), open_channel(address) as channel:
        watch: Any = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        async with asyncio.timeout(PATIENCE_S):
            async with owned_call(watch(health_pb2.HealthCheckRequest(service=SERVICE))) as call:
                assert (await call.read()).status == health_pb2.HealthCheckResponse.SERVING
                await built.drain()
                assert (await call.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_reflection_names_what_is_served() -> None:
    """WEIR-067: tools find the services and the standard ones."""
    async with serving({}) as (_, address), open_channel(address) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        async with owned_call(stub.ServerReflectionInfo(iter([request]))) as call:
            response = await call.read()
    names = {service.name for service in response.list_services_response.service}
    assert {SERVICE, "grpc.health.v1.Health"} <= names


class Speaking:
    """A stream that goes on until it is told to end."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def speak(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await self.go_on.wait()
            yield b"last"
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def test_draining_refuses_new_calls_and_finishes_running_ones() -> None:
    """WEIR-068: nothing that runs is lost, nothing new is taken."""
    speaking = Speaking()
    async with (
        serving({"Download": speaking.speak}) as (built, address),
        client_of(address) as client,
        owned_call(client.download()) as call,
    ):
        assert await call.read() == b"first"
        assert built.running_calls == 1
        draining = asyncio.create_task(built.drain())
        await asyncio.sleep(0)
        _, refused = await outcome(client, "Download")
        assert (refused.reason, refused.code) == (Reason.SHUTTING_DOWN, GrpcCode.UNAVAILABLE)
        assert not draining.done()
        speaking.go_on.set()
        assert [await call.read(), await call.read()] == [b"last", grpc.aio.EOF]
        async with asyncio.timeout(PATIENCE_S):
            await draining
        assert built.running_calls == 0


async def test_an_idle_server_has_drained_at_once() -> None:
    """WEIR-068: nobody waits for calls that are not there."""
    async with serving({}) as (built, _):
        async with asyncio.timeout(PATIENCE_S):
            await built.drain()


async def test_closing_cancels_what_still_runs() -> None:
    """WEIR-068: after the drain's deadline the rest is cancelled, and the caller learns."""
    speaking = Speaking()
    async with (
        serving({"Download": speaking.speak}) as (built, address),
        client_of(address) as client,
        owned_call(client.download()) as call,
    ):
        assert await call.read() == b"first"
        async with asyncio.timeout(PATIENCE_S):
            await built.close()
            await speaking.cancelled.wait()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert failure_of_rpc_error(caught.value).reason is Reason.BACKEND_UNAVAILABLE
        await built.close()


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "Address already in use"),
        ("192.0.2.1", "Cannot assign requested address"),
        ("no.such.host.invalid", "the host has no address"),
    ],
)
async def test_an_address_that_cannot_be_had_is_an_os_error_and_the_log_says_why(
    host: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """WEIR-067: it ends the start with address and reason, nothing half open."""
    async with serving({}) as (_, address):
        port = int(address.rpartition(":")[2])
        second = build_server(ServerSettings(host=host, port=port), services=[SERVICE])
        with pytest.raises(OSError, match=f"cannot listen on {host}:{port}: {reason}"):
            await second.start()
        await second.close()
    (record,) = [record for record in caplog.records if record.message == "cannot_listen"]
    assert record.__dict__["weir_fields"] == {"address": f"{host}:{port}", "reason": reason}


@pytest.mark.parametrize(
    ("host", "dialled"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")]
)
async def test_the_address_is_one_that_a_client_can_dial(host: str, dialled: str) -> None:
    """WEIR-080: the ready line's address works from this machine, whatever is listened on."""
    built = build_server(ServerSettings(host=host), services=[SERVICE])
    address = await built.start()
    assert address.rpartition(":")[0] == dialled
    await built.set_ready(True)
    assert await health_of(address, SERVICE) == health_pb2.HealthCheckResponse.SERVING
    await built.close()
