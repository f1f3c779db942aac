"""Speech from the replicas of the TTS service.

Owns: what the replicas can do together, and when and where a failed segment is tried again. Does
not own: whether it may be (`progress`), one call (`attempt`), the replicas (`pool`), what a failure
does to an utterance (the session's core). Enforces: WEIR-131 (replicas that differ offer what all
of them declare), WEIR-311 (a profile that the edge lacks is not offered).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import replace
from typing import Self

from weir.tts.v1 import tts_pb2, tts_pb2_grpc

from contracts.capabilities import SpeechCapabilities, shared_by_all
from contracts.errors import Failure, Reason, WeirError, failure
from contracts.modality import Accepted, IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.backends import wire
from services.edge.backends.attempt import Attempt
from services.edge.backends.pool import ReplicaPool
from services.edge.backends.progress import REPLICA_FAULTS, SegmentProgress
from services.edge.backends.replica import Replica
from services.edge.backends.retry import Timing
from services.edge.backends.settings import PoolSettings, TtsBackendSettings
from services.edge.backends.targets import Address, Resolve, resolve
from services.runtime.channel import open_channel, owned_call
from services.runtime.logging import get_logger
from services.runtime.transport import ChannelSettings

_log = get_logger(__name__)

UNREACHABLE = failure(Reason.BACKEND_UNAVAILABLE, "No backend can be reached.")
CLOSED = failure(Reason.SHUTTING_DOWN, "The edge is shutting down.")


class TtsBackend:
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
        self._settings = settings
        self._pool_settings = pool or PoolSettings()
        self._known_profiles = frozenset(known_profiles)
        self._ignored: set[tuple[Address, str]] = set()
        self._timing = timing or Timing()
        self._records: tuple[SpeechCapabilities, ...] = ()
        self._shared: SpeechCapabilities | None = None
        self._pool: ReplicaPool[SpeechCapabilities] = ReplicaPool(
            settings.parsed_targets,
            self._pool_settings,
            self._probe,
            open_channel=lambda address: open_channel(str(address), channel),
            resolve=resolve,
            timing=self._timing,
        )

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def start(self) -> None:
        """Start to look for replicas; needs a running event loop, returns at once."""
        self._pool.start()

    async def aclose(self) -> None:
        """Close every channel. Segments still in synthesis fail with SHUTTING_DOWN."""
        await self._pool.aclose()

    def capabilities(self) -> SpeechCapabilities | None:
        """Return what all reachable replicas declare; None when none is reachable.

        None as well when the reachable ones have no voice or language in common.
        """
        records = tuple(replica.declared for replica in self._pool.ready if replica.declared)
        if records != self._records:
            self._records = records
            self._shared = shared_by_all(records)  # WEIR-131
            if records and self._shared is None:
                _log.error("replicas_share_nothing", replicas=len(records))
        return self._shared

    def replicas(self) -> tuple[tuple[Address, bool, int], ...]:
        """Return address, readiness and outstanding requests of every replica."""
        return tuple(
            (replica.address, replica.declared is not None, replica.outstanding)
            for replica in self._pool.replicas
        )

    def refresh(self) -> None:
        """Ask every replica for its capabilities now, not at the next interval."""
        self._pool.refresh()

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `condition` holds, which is asked whenever a replica comes, goes or changes.

        Returns False when it does not hold within `timeout_s`.
        """
        return await self._pool.wait_until(condition, timeout_s)

    async def wait_ready(self, timeout_s: float, *, replicas: int = 1) -> bool:
        """Wait until that many replicas are reachable; False when `timeout_s` passes before."""
        return await self._pool.wait_until(lambda: len(self._pool.ready) >= replicas, timeout_s)

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
            replica = await self._choose(progress)
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

    async def _choose(self, progress: SegmentProgress) -> Replica[SpeechCapabilities]:
        """Choose the replica of the next attempt; wait for one while none is reachable."""
        while True:
            if self._pool.closed:
                raise WeirError(CLOSED)
            replica = self._pool.pick(progress.tried)
            if replica is not None:
                return replica
            remaining_s = progress.deadline - self._timing.clock()
            if remaining_s <= 0 or not await self._pool.wait_until(
                lambda: bool(self._pool.ready) or self._pool.closed, remaining_s
            ):
                raise WeirError(progress.final(UNREACHABLE))

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
        asked_s = min((cause.retry_after_ms or 0) / 1000, self._pool_settings.retry_after_most_s)
        if cause.reason in REPLICA_FAULTS:
            self._pool.failed(
                replica, asked_s=asked_s, ask_again=cause.reason is not Reason.OVERLOADED
            )
        if self._pool.closed:
            raise WeirError(CLOSED)
        if not progress.may_retry(cause):
            raise WeirError(progress.final(cause))
        timing = self._timing
        delay_s = self._settings.retry_backoff.delay_s(progress.attempts, timing.chance)
        if not self._pool.fresh:  # the next attempt meets one that has asked for time
            delay_s = max(delay_s, asked_s * timing.chance.uniform(1.0, 1.25))
        if timing.clock() + delay_s >= progress.deadline:
            raise WeirError(progress.final(cause))
        return delay_s

    def _explain_cancellation(self) -> None:
        """Raise SHUTTING_DOWN when the call was cancelled by closing its channel, not its task."""
        task = asyncio.current_task()
        if self._pool.closed and task is not None and not task.cancelling():
            raise WeirError(CLOSED) from None

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
