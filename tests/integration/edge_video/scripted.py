"""Scripted video replicas: real gRPC servers on 127.0.0.1 whose answers a test writes.

Owns: servers and the usual scripts. Does not own: the video service itself; these replicas speak
its protocol and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import grpc.aio
from weir.video.v1 import video_pb2, video_pb2_grpc

from contracts.errors import Failure, Reason, failure
from contracts.generation import (
    Accepted,
    Chunk,
    GenerationRequest,
    GenerationUpdate,
    Outcome,
    VideoCompleted,
)
from contracts.video import GenerationIdentity, VideoCapabilities, VideoCodec
from services.edge.backends.settings import VideoBackendSettings
from services.edge.backends.video import VideoBackend
from services.runtime.errors import abort
from services.video.replies import capabilities_reply, reply
from tests.integration.backends.scripted import PATIENCE_S
from tests.integration.backends.support import QUIET_POOL, nothing_resolves
from tests.unit.edge.video.session_fixture import STANDARD

ACCEPTED = Accepted(320, 192, Fraction(24), VideoCodec.H264, "video/mp4", 9, 12, 9, 3, 7)
CHUNK = Chunk(0, 0, 9, b"media")
TRAILER = Chunk(1, None, 0, b"end")
COMPLETED = VideoCompleted(2, 1, 9, 8)
DONE = Outcome(None, False, 2)
WHOLE: list[GenerationUpdate] = [ACCEPTED, CHUNK, TRAILER, COMPLETED, DONE]
REQUEST = GenerationRequest(GenerationIdentity("session-1", "video_stream-1"), "A street.", 2)


@dataclass
class Call:
    """One call as its script sees it."""

    config: video_pb2.StreamGenerateRequest
    requests: AsyncIterator[video_pb2.StreamGenerateRequest]
    context: grpc.aio.ServicerContext[Any, Any]

    async def say(self, *updates: GenerationUpdate) -> None:
        """Send updates in answer to the config."""
        for update in updates:
            await self.context.write(self.written(update))

    def written(self, update: GenerationUpdate) -> video_pb2.StreamGenerateResponse:
        """Return an update as a message."""
        who = self.config.config.identity
        identity = GenerationIdentity(who.session_id, who.request_id, who.attempt)
        return reply(identity, update)

    async def fail(self, cause: Failure) -> None:
        """End the call with a status."""
        await abort(self.context, cause)


Script = Callable[[Call], Awaitable[None]]


def says(*updates: GenerationUpdate) -> Script:
    """Answer with these updates, read to the half-close, and end with OK."""

    async def script(call: Call) -> None:
        await call.say(*updates)
        async for _ in call.requests:
            pass

    return script


def refuses(reason: Reason, retry_after_ms: int | None = None) -> Script:
    """End the call with a failure before anything is accepted."""

    async def script(call: Call) -> None:
        await call.fail(failure(reason, "As scripted.", retry_after_ms=retry_after_ms))

    return script


class Replica(video_pb2_grpc.VideoServiceServicer):
    """One scripted replica. The n-th call meets the n-th script; the last one repeats."""

    def __init__(self, *scripts: Script, capabilities: VideoCapabilities = STANDARD) -> None:
        self.scripts = list(scripts) or [says(*WHOLE)]
        self.capabilities = capabilities
        self.configs: list[video_pb2.StreamGenerateRequest] = []
        self.later: list[video_pb2.StreamGenerateRequest] = []
        self.half_closed = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.server = grpc.aio.server()
        self.target = ""

    @property
    def attempts(self) -> list[int]:
        """Attempt numbers of the calls that came here."""
        return [config.config.identity.attempt for config in self.configs]

    async def StreamGenerate(  # type: ignore[override]  # noqa: N802  # the proto's name; writes
        self,
        request_iterator: AsyncIterator[video_pb2.StreamGenerateRequest],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> None:
        config = await anext(request_iterator)
        script = self.scripts[min(len(self.configs), len(self.scripts) - 1)]
        self.configs.append(config)
        try:
            await script(Call(config, self._noting(request_iterator), context))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def _noting(
        self, requests: AsyncIterator[video_pb2.StreamGenerateRequest]
    ) -> AsyncIterator[video_pb2.StreamGenerateRequest]:
        async for request in requests:
            self.later.append(request)
            yield request
        self.half_closed.set()

    async def GetCapabilities(  # noqa: N802  # the name is the proto's
        self, request: video_pb2.GetCapabilitiesRequest, context: object
    ) -> video_pb2.GetCapabilitiesResponse:
        return capabilities_reply(self.capabilities)


@asynccontextmanager
async def backend(*replicas: Replica, **settings: Any) -> AsyncIterator[VideoBackend]:
    """Run replicas and a backend that has found all of them."""
    for replica in replicas:
        video_pb2_grpc.add_VideoServiceServicer_to_server(replica, replica.server)
        replica.target = f"127.0.0.1:{replica.server.add_insecure_port('127.0.0.1:0')}"
        await replica.server.start()
    try:
        targets = tuple(replica.target for replica in replicas)
        async with VideoBackend(
            replace(VideoBackendSettings(targets=targets), **settings),
            pool=QUIET_POOL,
            resolve=nothing_resolves,
        ) as subject:
            assert await subject.wait_ready(PATIENCE_S, replicas=len(replicas))
            yield subject
    finally:
        for replica in replicas:
            await replica.server.stop(None)
