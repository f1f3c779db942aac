"""Speech from the replicas of the TTS service.

Owns: when and where a failed segment is tried again. Does not own: whether it may be (`progress`),
one call (`attempt`), the choice of a replica (`replicated`), what a failure does to an utterance
(the session's core). Enforces: WEIR-131 (replicas that differ offer what all
of them declare), WEIR-311 (a profile that the edge lacks is not offered).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from dataclasses import replace

from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from contracts.capabilities import SpeechCapabilities, shared_by_all
from contracts.errors import Failure, WeirError
from contracts.modality import Accepted, IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.backends import wire
from services.edge.backends.attempt import Attempt
from services.edge.backends.progress import SegmentProgress
from services.edge.backends.replica import Replica
from services.edge.backends.replicated import UNREACHABLE, ReplicatedBackend
from services.edge.backends.retry import Timing
from services.edge.backends.settings import PoolSettings, TtsBackendSettings
from services.edge.backends.targets import Address, Resolve, resolve
from services.runtime.channel import owned_call
from services.runtime.logging import get_logger
from services.runtime.transport import ChannelSettings

_log = get_logger(__name__)


class TtsBackend(ReplicatedBackend[SpeechCapabilities]):
    """All TTS replicas as one. Use it as a context manager, or between `start` and `aclose`."""

    def __init__(
        self,
        settings: TtsBackendSettings,
        *,
        known_profiles: Collection[str],
        pool: PoolSettings | None = None,
        channel: ChannelSettings | None = None,
        timing: Timing | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        super().__init__(
            settings.parsed_targets,
            shared_by_all,  # WEIR-131
            pool=pool,
            channel=channel,
            timing=timing,
            resolve=resolve,
        )
        self._settings = settings
        self._known_profiles = frozenset(known_profiles)
        self._ignored: set[tuple[Address, str]] = set()

    async def synthesize(
        self, request: SegmentRequest, *, deadline_s: float, retry_after_accept: bool = False
    ) -> AsyncGenerator[IdentifiedUpdate, None]:
        """Speak one segment; give its updates, `Accepted` once and first, `Outcome` last.

        Refusals and lost connections before acceptance are tried again as the next attempt, on
        another replica where there is one, until `deadline_s` seconds have passed. After acceptance
        nothing is, unless `retry_after_accept` and no more than `Accepted` has been given. Updates
        carry the identity of the attempt they come from.

        Close the generator (`contextlib.aclosing`): that cancels the call.

        Raises WeirError: before acceptance with the backend's failure, or BACKEND_UNAVAILABLE;
        afterwards, and when the stream breaks the contract, with SEGMENT_FAILED and the code of the
        cause.
        """
        progress = SegmentProgress(
            request,
            deadline=self._timing.clock() + deadline_s,
            retries_after_accept=self._settings.retries_after_accept if retry_after_accept else 0,
        )
        while True:
            replica = await self._choose_for(progress)
            try:
                with self._pool.lease(replica):
                    async with owned_call(self._begin(replica, progress)) as attempt:
                        while (identified := await attempt.next()) is not None:
                            if isinstance(identified.update, Accepted):
                                replica.succeeded()
                            if progress.admit(identified):
                                yield identified
                        return
            except WeirError as failed:
                delay_s = self._decide(replica, progress, failed.failure)
            except asyncio.CancelledError:
                self._explain_cancellation()
                raise
            await self._timing.sleep(delay_s)

    async def _choose_for(self, progress: SegmentProgress) -> Replica[SpeechCapabilities]:
        try:
            return await self._choose(progress.tried, progress.deadline)
        except WeirError as error:
            if error.failure is UNREACHABLE:
                raise WeirError(progress.final(UNREACHABLE)) from None
            raise

    def _begin(self, replica: Replica[SpeechCapabilities], progress: SegmentProgress) -> Attempt:
        remaining_s = progress.deadline - self._timing.clock()
        return Attempt(
            replica.channel,
            progress.begin(replica.address),
            accept_timeout_s=min(self._settings.accept_timeout_s, remaining_s),
            stall_timeout_s=self._settings.stall_timeout_s,
        )

    def _decide(
        self, replica: Replica[SpeechCapabilities], progress: SegmentProgress, cause: Failure
    ) -> float:
        """Return the delay in seconds before the next attempt, or raise the final failure."""
        self._blame(replica, cause)
        if not progress.may_retry(cause):
            raise WeirError(progress.final(cause))
        delay_s = self._delay_s(
            cause, self._settings.retry_backoff, progress.attempts, progress.deadline
        )
        if delay_s is None:
            raise WeirError(progress.final(cause))
        return delay_s

    async def _probe(self, replica: Replica[SpeechCapabilities]) -> SpeechCapabilities:
        response = await tts_pb2_grpc.TtsServiceStub(replica.channel).GetCapabilities(
            tts_pb2.GetCapabilitiesRequest(), timeout=self._pool_settings.probe_timeout_s
        )
        return self._offered(replica.address, wire.capabilities(response))

    def _offered(self, address: Address, declared: SpeechCapabilities) -> SpeechCapabilities:
        """Leave out the profiles that this edge has no frontend for (WEIR-311)."""
        for record in declared.text_commitment:
            seen = (address, record.profile)
            if record.profile not in self._known_profiles and seen not in self._ignored:
                self._ignored.add(seen)
                _log.warning("profile_ignored", replica=str(address), profile=record.profile)
        return replace(
            declared,
            text_commitment=tuple(
                record
                for record in declared.text_commitment
                if record.profile in self._known_profiles
            ),
        )
