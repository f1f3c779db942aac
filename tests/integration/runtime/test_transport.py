"""What gRPC does by itself, each with the option that mends it: when one stops being true, know it.

Each pair of tests shows the trap with gRPC's own defaults and then that ours do not fall into it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
import pytest

from services.runtime.channel import owned_call
from services.runtime.transport import ChannelSettings, ServerSettings
from tests.integration.runtime.serving import (
    PATIENCE_S,
    Client,
    bare_client_of,
    client_of,
    serving,
    serving_bare,
)

CHUNK_BYTES = 4800
"""A tenth of a second of speech."""
QUIET_S = 0.5
"""Time without progress after which something counts as standing still."""
FREQUENT = ChannelSettings(keepalive_s=0.1, keepalive_timeout_s=5.0)


class Speaker:
    """Streams chunks as fast as it is let, and counts what it could send."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.progress = asyncio.Event()

    async def speak(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        while self.sent_bytes < 20_000_000:
            yield bytes(CHUNK_BYTES)
            self.sent_bytes += CHUNK_BYTES
            self.progress.set()

    async def standstill(self) -> None:
        """Return when nothing more could be sent for QUIET_S."""
        while True:
            self.progress.clear()
            try:
                await asyncio.wait_for(self.progress.wait(), QUIET_S)
            except TimeoutError:
                return


async def run_ahead(client: Client, speaker: Speaker) -> int:
    """Return the bytes that were sent to a reader that stalls after its first chunk."""
    async with owned_call(client.download()) as call:
        assert await call.read() == bytes(CHUNK_BYTES)
        await speaker.standstill()
    return speaker.sent_bytes


async def test_a_server_does_not_run_ahead_of_a_stalled_reader() -> None:
    """WEIR-060: at most 128 KiB are under way, less than three seconds of speech."""
    speaker = Speaker()
    async with (
        serving({"Download": speaker.speak}) as (_, address),
        client_of(address) as client,
    ):
        assert await run_ahead(client, speaker) <= 128 * 1024


async def test_grpc_alone_runs_far_ahead_of_a_stalled_reader() -> None:
    """WEIR-060: without our options megabytes are under way; else they can go."""
    speaker = Speaker()
    async with (
        serving_bare({"Download": speaker.speak}) as address,
        bare_client_of(address) as client,
    ):
        assert await run_ahead(client, speaker) > 1024 * 1024


async def test_a_reader_that_goes_on_gets_everything() -> None:
    """WEIR-060: a small window holds nothing back for good."""
    size = 3_000_000

    async def speak(request: bytes, context: Any) -> AsyncIterator[bytes]:
        for _ in range(size // CHUNK_BYTES):
            yield bytes(CHUNK_BYTES)

    async with (
        serving({"Download": speak}) as (_, address),
        client_of(address) as client,
        owned_call(client.download()) as call,
    ):
        received = sum([len(chunk) async for chunk in call])
    assert received == size


class Quiet:
    """Sends one message, is silent until it is told to go on, then sends another."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def speak(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b"first"
        await self.go_on.wait()
        yield b"second"


async def test_keepalive_over_a_quiet_stream_meets_no_goaway() -> None:
    """WEIR-061: our server permits what gRPC's defaults answer with the end of the connection.

    Both are asked at the same pace; the default one says how long it takes to be sent away.
    """
    ours, bare = Quiet(), Quiet()
    settings = ServerSettings(min_ping_interval_s=0.05)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        _, our_address = await enter(serving({"Download": ours.speak}, settings))
        bare_address = await enter(serving_bare({"Download": bare.speak}))
        our_client = await enter(client_of(our_address, FREQUENT))
        bare_client = await enter(client_of(bare_address, FREQUENT))
        our_call = await enter(owned_call(our_client.download()))
        bare_call = await enter(owned_call(bare_client.download()))
        assert [await our_call.read(), await bare_call.read()] == [b"first", b"first"]
        reading = asyncio.ensure_future(our_call.read())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await bare_call.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "ping" in (caught.value.details() or "").lower()
        await asyncio.wait({reading}, timeout=QUIET_S)
        assert not reading.done()
        ours.go_on.set()
        assert await reading == b"second"


class Abandoned:
    """Streams until it is cancelled, and tells."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    async def speak(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


async def test_an_abandoned_call_is_cancelled_by_its_scope() -> None:
    """WEIR-063: the server learns at once that nobody listens."""
    abandoned = Abandoned()
    async with serving({"Download": abandoned.speak}) as (_, address), client_of(address) as client:
        async with owned_call(client.download()) as call:
            assert await call.read() == b"first"
        async with asyncio.timeout(PATIENCE_S / 2):
            await abandoned.cancelled.wait()


async def test_grpc_alone_does_not_cancel_a_call_whose_object_is_dropped() -> None:
    """WEIR-063: without the scope the server works for nobody."""
    abandoned = Abandoned()
    async with serving({"Download": abandoned.speak}) as (_, address), client_of(address) as client:
        call = client.download()
        assert await call.read() == b"first"
        del call
        gc.collect()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(abandoned.cancelled.wait(), QUIET_S)


async def stream_over_age(settings: ServerSettings) -> list[bytes]:
    """Return what a stream got that began before and ends after its connection is too old."""
    connected: list[str] = []

    async def single(request: bytes, context: Any) -> bytes:
        connected.append(context.peer())
        return b""

    quiet = Quiet()
    async with (
        serving({"Download": quiet.speak, "Single": single}, settings) as (_, address),
        client_of(address) as client,
        owned_call(client.download()) as call,
    ):
        received = [await call.read()]
        async with asyncio.timeout(PATIENCE_S):
            while len(set(connected)) < 2:
                await client.single()
        reading = asyncio.ensure_future(call.read())
        await asyncio.wait({reading}, timeout=QUIET_S)
        quiet.go_on.set()
        received.append(await reading)
    return received


async def test_new_calls_leave_an_old_connection_and_its_stream_goes_on() -> None:
    """WEIR-062: the age moves calls to other replicas, the grace is longer than a stream."""
    settings = ServerSettings(max_connection_age_s=0.2, max_connection_age_grace_s=60.0)
    assert await stream_over_age(settings) == [b"first", b"second"]


async def test_a_grace_shorter_than_a_stream_cuts_it() -> None:
    """WEIR-062: which is why the grace is a setting with a generous default."""
    settings = ServerSettings(max_connection_age_s=0.2, max_connection_age_grace_s=0.1)
    quiet = Quiet()
    async with (
        serving({"Download": quiet.speak}, settings) as (_, address),
        client_of(address) as client,
        owned_call(client.download()) as call,
    ):
        assert await call.read() == b"first"
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()


async def replicas_reached(address_of: Any, calls: int) -> set[bytes]:
    async with AsyncExitStack() as stack:
        addresses = []
        for name in (b"one", b"two", b"three"):

            async def single(request: bytes, context: Any, name: bytes = name) -> bytes:
                return name

            _, address = await stack.enter_async_context(serving({"Single": single}))
            addresses.append(address)
        client = await stack.enter_async_context(client_of(address_of(addresses)))
        reached = set()
        for _ in range(calls):
            reached.add(await client.single())
            if len(reached) == 3:
                break
        return reached


async def test_calls_are_spread_over_every_address_of_a_list() -> None:
    """WEIR-062: one channel reaches all replicas; gRPC alone would stay with the first."""
    assert await replicas_reached(",".join, 200) == {b"one", b"two", b"three"}


@pytest.mark.parametrize(("size", "good"), [(4096, True), (4097, False)])
async def test_a_message_larger_than_the_setting_is_refused(size: int, good: bool) -> None:
    """WEIR-060: sizes are bounded at both ends; one call is lost, the connection is not."""

    async def single(request: bytes, context: Any) -> bytes:
        return request[:1]

    settings = ServerSettings(max_request_bytes=4096)
    async with serving({"Single": single}, settings) as (_, address), client_of(address) as client:
        if good:
            assert await client.single(bytes(size)) == b"\0"
        else:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.single(bytes(size))
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await client.single(b"x") == b"x"
