"""The end of a bidirectional stream, over a real connection, with a client that keeps writing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from contracts.errors import Failure, FieldViolation, Reason, failure
from services.runtime.errors import abort, failure_of_rpc_error
from services.runtime.stream_end import RequestReader, end_stream
from tests.integration.runtime.serving import PATIENCE_S, client_of, serving

FAILED = failure(
    Reason.INVALID_MESSAGE,
    "The request is refused.",
    violations=(FieldViolation("config.prompt", "Is required."),),
)
ROUNDS = 15
BIG = b"x" * 2000


class Talker:
    """A client that writes from `accepted` on until it is told to stop."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._stop = False
        self.written = 0

    async def write_on(self) -> None:
        """Write; what becomes of it is never the verdict."""
        try:
            while not self._stop:
                await self._call.write(BIG)
                self.written += 1
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return

    async def outcome(self, *, polite: bool) -> tuple[bytes, Failure | None]:
        """Return the last message and the failure of the status, None for OK."""
        await self._call.write(b"config")
        assert await self._call.read() == b"accepted"
        writing = asyncio.create_task(self.write_on())
        last = b""
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                last = message
                if polite and last == b"outcome":
                    self._stop = True
                    await writing
                    await self._call.done_writing()
        except grpc.aio.AioRpcError as error:
            return last, failure_of_rpc_error(error)
        finally:
            self._stop = True
            await writing
        return last, None


def ending_with(failed: Failure | None, drop_s: float) -> Any:
    """Return a handler that accepts, reads a little, and ends."""

    async def chat(requests: AsyncIterator[bytes], context: Any) -> None:
        reader = RequestReader(requests)
        try:
            assert await reader.next() == b"config"
            await context.write(b"accepted")
            for _ in range(3):
                assert await reader.next() == BIG
            await end_stream(context, reader, b"outcome", failed, drop_s=drop_s)
        finally:
            await reader.close()

    return chat


@pytest.mark.parametrize("failed", [FAILED, None], ids=["a failure", "success"])
async def test_the_status_arrives_although_the_client_was_writing(failed: Failure | None) -> None:
    """WEIR-220: outcome, then the same code and details, every time."""
    handlers = {"Chat": ending_with(failed, PATIENCE_S)}
    async with serving(handlers) as (_, address), client_of(address) as client:
        for _ in range(ROUNDS):
            talker = Talker(client.chat())
            assert await talker.outcome(polite=True) == (b"outcome", failed)
            assert talker.written >= 3


async def test_a_client_that_never_stops_writing_has_the_verdict_and_only_so_long() -> None:
    """WEIR-220: the outcome is in-band; the call ends at its bound and the handler with it."""
    handlers = {"Chat": ending_with(FAILED, 0.2)}
    async with serving(handlers) as (server, address), client_of(address) as client:
        loop = asyncio.get_running_loop()
        for _ in range(3):
            begun = loop.time()
            last, ended = await Talker(client.chat()).outcome(polite=False)
            assert last == b"outcome"
            assert ended is not None
            assert loop.time() - begun < 5
        async with asyncio.timeout(PATIENCE_S):
            while server.running_calls:  # noqa: ASYNC110  # counts have no event to wait for
                await asyncio.sleep(0)


async def test_without_this_end_the_status_is_lost() -> None:
    """WEIR-220: the reason for all of it; when this fails, gRPC has learned to do it."""

    async def chat(requests: AsyncIterator[bytes], context: Any) -> None:
        reader = RequestReader(requests)
        try:
            await reader.next()
            await context.write(b"accepted")
            await reader.next()
            await abort(context, FAILED)
        finally:
            await reader.close()

    async with serving({"Chat": chat}) as (_, address), client_of(address) as client:
        verdicts = [
            (await Talker(client.chat()).outcome(polite=True))[1] for _ in range(3 * ROUNDS)
        ]
    assert any(verdict != FAILED for verdict in verdicts)


class _Requests:
    """Requests that a test puts there."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.closed = False

    async def stream(self) -> AsyncIterator[bytes]:
        try:
            while (item := await self.queue.get()) is not None:
                yield item
        finally:
            self.closed = True


async def test_a_read_that_is_cancelled_loses_nothing() -> None:
    """WEIR-220: grpc.aio would end the whole stream; the next read has the message."""
    requests = _Requests()
    reader = RequestReader(requests.stream())
    waiting = asyncio.create_task(reader.next())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    requests.queue.put_nowait(b"one")
    requests.queue.put_nowait(b"two")
    assert await reader.next() == b"one"
    assert await reader.next() == b"two"
    requests.queue.put_nowait(None)
    assert await reader.next() is None
    assert await reader.next() is None
    await reader.close()


async def test_a_read_that_fails_is_told_once_and_ends_the_stream(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WEIR-066, WEIR-220: a malformed message is the handler's matter; closing logs nothing."""

    def decode(data: bytes) -> bytes:
        raise ValueError("malformed")

    ends: list[bytes | None] = []

    async def chat(requests: AsyncIterator[bytes], context: Any) -> None:
        reader = RequestReader(requests)
        try:
            await reader.next()
        finally:
            ends.append(await reader.next())
            await reader.close()

    async with (
        serving({"Chat": chat}, decode=decode) as (_, address),
        client_of(address) as client,
    ):
        call = client.chat()
        await call.write(b"bad")
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()
    assert ends == [None]
    assert "task_failed" not in [record.message for record in caplog.records]


async def test_dropping_ends_with_the_stream_or_in_time() -> None:
    """WEIR-220: True once the client has half-closed; False when it takes too long."""
    requests = _Requests()
    reader = RequestReader(requests.stream())
    for item in (b"one", b"two"):
        requests.queue.put_nowait(item)
    assert not await reader.drop_rest(0.05)
    requests.queue.put_nowait(None)
    assert await reader.drop_rest(PATIENCE_S)
    await reader.close()


async def test_closing_leaves_no_read_behind() -> None:
    """WEIR-066: the read under way is cancelled, and there is nothing to read any more."""
    requests = _Requests()
    reader = RequestReader(requests.stream())
    assert not await reader.drop_rest(0.01)
    await reader.close()
    await reader.close()
    assert requests.closed
    assert await reader.next() is None
