"""Generations by the replicas of the video service.

Owns: which replica is asked for a generation, and which one next. Does not own: one call
(`generation_call`), the choice itself (`replicated`), what a failure does to a session (its core).
Enforces: WEIR-149 (replicas that differ offer what all of them declare), WEIR-134 (only what had no
effect is tried again: nothing, once a replica has accepted).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from weir.video.v1 import video_pb2, video_pb2_grpc

from contracts.errors import Failure, WeirError
from contracts.generation import GenerationRequest, GenerationUpdate
from contracts.video import VideoCapabilities, shared_by_all
from services.edge.backends import generation_wire as wire
from services.edge.backends.controls import ControlQueue
from services.edge.backends.generation_call import GenerationCall
from services.edge.backends.progress import RETRIED, VIOLATED
from services.edge.backends.replica import Replica
from services.edge.backends.replicated import UNREACHABLE, ReplicatedBackend
from services.edge.backends.retry import Timing
from services.edge.backends.settings import PoolSettings, VideoBackendSettings
from services.edge.backends.targets import Address, Resolve, resolve
from services.runtime.channel import owned_call
from services.runtime.transport import ChannelSettings


class VideoBackend(ReplicatedBackend[VideoCapabilities]):
    """All video replicas as one. Use it as a context manager, or between `start` and `aclose`."""

    def __init__(
        self,
        settings: VideoBackendSettings,
        *,
        pool: PoolSettings | None = None,
        channel: ChannelSettings | None = None,
        timing: Timing | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        super().__init__(
            settings.parsed_targets,
            shared_by_all,  # WEIR-149
            pool=pool,
            channel=channel,
            timing=timing,
            resolve=resolve,
        )
        self._settings = settings

    async def generate(
        self, request: GenerationRequest, controls: ControlQueue
    ) -> AsyncGenerator[GenerationUpdate, None]:
        """Run one generation; give its updates, `Accepted` once and first, `Outcome` last.

        What is in `controls` is sent once the generation is accepted; the queue has ended when the
        generator has. Refusals and lost connections before acceptance are tried again, on another
        replica where there is one, within the accept deadline of the settings.

        Close the generator (`contextlib.aclosing`): that cancels the call.

        Raises WeirError: what the last replica said, or BACKEND_UNAVAILABLE, or INTERNAL when the
        stream breaks the contract. A failure that the replica told in its outcome is not raised.
        """
        deadline = self._timing.clock() + self._settings.accept_deadline_s
        tried: set[Address] = set()
        refused: Failure | None = None
        while True:
            replica = await self._choose_or_say(tried, deadline, refused)
            tried.add(replica.address)
            call = GenerationCall(replica.channel, request)
            try:
                with self._pool.lease(replica):
                    async with owned_call(call):
                        yield await call.begin(deadline - self._timing.clock())
                        replica.succeeded()
                        call.control(controls)
                        while (update := await call.next()) is not None:
                            yield update
                        return
            except WeirError as failed:
                refused = failed.failure
                delay_s = self._decide(replica, call, refused, request.identity.attempt, deadline)
            except asyncio.CancelledError:
                self._explain_cancellation()
                raise
            finally:
                await call.close()
            request = replace(request, identity=request.identity.next_attempt())
            await self._timing.sleep(delay_s)

    async def _choose_or_say(
        self, tried: set[Address], deadline: float, refused: Failure | None
    ) -> Replica[VideoCapabilities]:
        """Choose a replica; without one, say what the last one said rather than that it is gone."""
        try:
            return await self._choose(tried, deadline)
        except WeirError as error:
            if error.failure is UNREACHABLE and refused is not None:
                raise WeirError(refused) from None
            raise

    def _decide(
        self,
        replica: Replica[VideoCapabilities],
        call: GenerationCall,
        cause: Failure,
        attempts: int,
        deadline: float,
    ) -> float:
        """Return the delay in seconds before the next attempt, or raise the final failure."""
        self._blame(replica, cause)
        # WEIR-134: a generation that has begun would begin anew, and its viewer has seen it.
        if call.accepted or cause is VIOLATED or cause.reason not in RETRIED:
            raise WeirError(cause)
        delay_s = self._delay_s(cause, self._settings.retry_backoff, attempts, deadline)
        if delay_s is None:
            raise WeirError(cause)
        return delay_s

    async def _probe(self, replica: Replica[VideoCapabilities]) -> VideoCapabilities:
        response = await video_pb2_grpc.VideoServiceStub(replica.channel).GetCapabilities(
            video_pb2.GetCapabilitiesRequest(), timeout=self._pool_settings.probe_timeout_s
        )
        return wire.capabilities(response)
