"""The video service in this process, served on a port of its own, and a viewer of it.

Owns: starting and ending a `VideoProcess` around an adapter of the test, and one call as a viewer
makes it. Does not own: the process as an operator starts it (`test_process`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc.aio
from weir.video.v1 import video_pb2, video_pb2_grpc

from contracts.errors import Failure
from contracts.status import failure_from_wire
from services.runtime.channel import open_channel, owned_call
from services.runtime.errors import failure_of_rpc_error
from services.runtime.metrics import Metrics
from services.runtime.settings import read_settings
from services.video.metrics import VideoMetrics
from services.video.process import VideoProcess
from services.video.settings import VideoSettings
from tests.unit.video.support import PATIENCE_S, config, credit, interaction

Stub: TypeAlias = "video_pb2_grpc.VideoServiceAsyncStub"
Response = video_pb2.StreamGenerateResponse


@dataclass(frozen=True, slots=True)
class Replica:
    """One served process with a channel to it."""

    process: VideoProcess
    metrics: Metrics
    channel: grpc.aio.Channel
    stub: Stub

    @property
    def busy(self) -> int:
        """Slots in use."""
        assert self.process.engine is not None
        return self.process.engine.admission.busy

    async def idle(self) -> None:
        """Return when every slot is free; fail when that takes longer than two seconds."""
        assert self.process.engine is not None
        async with asyncio.timeout(2.0):
            await self.process.engine.admission.empty()


class Viewer:
    """One call: what has come, what comes next, and how it ends."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.received: list[Response] = []
        self._writing = asyncio.Lock()

    @property
    def kinds(self) -> list[str | None]:
        """Kinds of everything that has come."""
        return [response.WhichOneof("message") for response in self.received]

    @property
    def chunks(self) -> list[video_pb2.GenerationChunk]:
        """Every payload that has come, the trailer included."""
        return [r.chunk for r in self.received if r.WhichOneof("message") == "chunk"]

    @property
    def media(self) -> list[video_pb2.GenerationChunk]:
        """Every payload that shows something."""
        return [chunk for chunk in self.chunks if chunk.video.num_frames]

    @property
    def payloads(self) -> list[bytes]:
        """The bytes of every payload."""
        return [chunk.video.data for chunk in self.chunks]

    async def send(self, *messages: video_pb2.StreamGenerateRequest) -> None:
        """Send messages, one after the other."""
        for message in messages:
            # gRPC takes one write at a time.
            async with self._writing:
                await self.call.write(message)

    async def next(self) -> Response | None:
        """Return what comes next, None at the end. Raises what the call ends with."""
        async with asyncio.timeout(PATIENCE_S):
            response = await self.call.read()
        if not isinstance(response, Response):
            return None
        self.received.append(response)
        return response

    async def until(self, kind: str, where: Callable[[Any], bool] = lambda _: True) -> Any:
        """Read on until a message of this kind comes; return it."""
        while (response := await self.next()) is not None:
            if response.WhichOneof("message") == kind:
                part = getattr(response, kind)
                if where(part):
                    return part
        raise AssertionError(f"the call ended without {kind}; it had {self.kinds}")

    async def barrier(self) -> None:
        """Return when every interaction sent so far has been encoded.

        Prompts are encoded first in, first out, so one that fails tells of all before it. Needs an
        adapter with the fail marker `!`.
        """
        event_id = f"barrier-{len(self.received)}"
        await self.send(interaction(event_id, "!"))
        await self.until("interaction_failed", lambda part: part.event_id == event_id)

    async def settled(self) -> None:
        """Return when the service has read everything that was sent so far."""
        event_id = f"settled-{len(self.received)}"
        # Wrong on purpose: it is answered at once, and changes nothing.
        await self.send(interaction(event_id, " "))
        await self.until("interaction_refused", lambda part: part.event_id == event_id)

    async def watch(self, credits: int = 1) -> video_pb2.GenerationOutcome:
        """Give credit for every chunk and return the outcome."""
        while (response := await self.next()) is not None:
            match response.WhichOneof("message"):
                case "chunk" if response.chunk.video.num_frames:
                    await self.send(credit(credits))
                case "outcome":
                    return response.outcome
        raise AssertionError("the call ended without an outcome")

    async def end(self) -> Failure | None:
        """Half-close, read to the end and return the failure of the status, None for OK."""
        await self.call.done_writing()
        try:
            while await self.next() is not None:
                pass
        except grpc.aio.AioRpcError as error:
            return failure_of_rpc_error(error)
        return None


def failure_in(outcome: video_pb2.GenerationOutcome) -> Failure | None:
    """Return the in-band failure of an outcome."""
    return failure_from_wire(outcome.failure) if outcome.HasField("failure") else None


def make_process(adapter: Any, **environ: str) -> tuple[VideoProcess, Metrics]:
    """Return a process that is not started; `environ` are settings without their prefix."""
    named = {f"VIDEO_{name}": value for name, value in environ.items()}
    metrics = Metrics("video")
    settings = read_settings(VideoSettings, named)
    return VideoProcess(settings, adapter, VideoMetrics(metrics)), metrics


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Stub]:
    """Open a channel of its own to `address`."""
    async with open_channel(address) as channel:
        yield video_pb2_grpc.VideoServiceStub(channel)


@asynccontextmanager
async def serving(adapter: Any, **environ: str) -> AsyncIterator[Replica]:
    """Serve `adapter` for the length of the scope."""
    process, metrics = make_process(adapter, **environ)
    try:
        address = await process.start()
        async with open_channel(address) as channel:
            yield Replica(process, metrics, channel, video_pb2_grpc.VideoServiceStub(channel))
    finally:
        await process.close()


@asynccontextmanager
async def asking(stub: Stub, first: Any = None, timeout_s: float = 60.0) -> AsyncIterator[Viewer]:
    """Start a call with its config; it ends with the scope."""
    async with owned_call(stub.StreamGenerate(timeout=timeout_s)) as call:
        await call.write(first or config())
        yield Viewer(call)


@asynccontextmanager
async def viewing(stub: Stub, first: Any = None, timeout_s: float = 60.0) -> AsyncIterator[Viewer]:
    """Start a call that has been accepted; it ends with the scope."""
    async with asking(stub, first, timeout_s) as viewer:
        await viewer.until("accepted")
        yield viewer


async def refusal_of(stub: Stub, first: Any = None) -> Failure:
    """Return why a call was refused before it was accepted."""
    async with asking(stub, first) as viewer:
        try:
            response = await viewer.next()
        except grpc.aio.AioRpcError as error:
            return failure_of_rpc_error(error)
    raise AssertionError(f"not refused but answered: {response}")


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until `condition` holds: for what no event tells. Fails after a while."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # metrics and counts have no event to wait for
            await asyncio.sleep(0)
