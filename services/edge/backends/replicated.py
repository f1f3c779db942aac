"""A backend made of replicas: what all of them offer, and which of them is tried next.

Owns: the pool's life, what the replicas declare together, the choice for an attempt and the wait
before the next one. Does not own: the calls, and what may be tried again (`tts`, `video`), the
replicas themselves (`pool`). Enforces: WEIR-132 (a replica that failed a request comes last for a
while), WEIR-134 (attempts end at a deadline).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, Self

from contracts.errors import Failure, Reason, WeirError, failure
from services.edge.backends.pool import ReplicaPool
from services.edge.backends.progress import REPLICA_FAULTS
from services.edge.backends.replica import D, Replica
from services.edge.backends.retry import Backoff, Timing
from services.edge.backends.settings import PoolSettings
from services.edge.backends.targets import Address, Resolve, Target
from services.runtime.channel import open_channel
from services.runtime.logging import get_logger
from services.runtime.transport import ChannelSettings

_log = get_logger(__name__)

UNREACHABLE = failure(Reason.BACKEND_UNAVAILABLE, "No backend can be reached.")
CLOSED = failure(Reason.SHUTTING_DOWN, "The edge is shutting down.")

Share = Callable[[Iterable[D]], D | None]
"""Returns what every one of some declarations offers, None when they have nothing in common."""


class ReplicatedBackend(Generic[D]):
    """All replicas as one. Use it as a context manager, or between `start` and `aclose`."""

    def __init__(
        self,
        targets: Sequence[Target],
        share: Share[D],
        *,
        pool: PoolSettings | None,
        channel: ChannelSettings | None,
        timing: Timing | None,
        resolve: Resolve,
    ) -> None:
        self._share = share
        self._pool_settings = pool or PoolSettings()
        self._timing = timing or Timing()
        self._records: tuple[D, ...] = ()
        self._shared: D | None = None
        self._pool: ReplicaPool[D] = ReplicaPool(
            targets,
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
        """Close every channel. Calls still in progress fail with SHUTTING_DOWN."""
        await self._pool.aclose()

    def capabilities(self) -> D | None:
        """Return what all reachable replicas declare; None when none is reachable.

        None as well when the reachable ones have nothing in common that could be relied on.
        """
        records = tuple(r.declared for r in self._pool.ready if r.declared is not None)
        if records != self._records:
            self._records = records
            self._shared = self._share(records)
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

    async def _probe(self, replica: Replica[D]) -> D:
        """Ask a replica what it declares. Raises AioRpcError, or ValueError for no valid answer."""
        raise NotImplementedError

    async def _choose(self, tried: Collection[Address], deadline: float) -> Replica[D]:
        """Choose the replica of the next attempt; wait for one while none is reachable.

        Raises WeirError: UNREACHABLE when there is none by the deadline, CLOSED after `aclose`.
        """
        while True:
            if self._pool.closed:
                raise WeirError(CLOSED)
            replica = self._pool.pick(tried)
            if replica is not None:
                return replica
            remaining_s = deadline - self._timing.clock()
            if remaining_s <= 0 or not await self._pool.wait_until(
                lambda: bool(self._pool.ready) or self._pool.closed, remaining_s
            ):
                raise WeirError(UNREACHABLE)

    def _blame(self, replica: Replica[D], cause: Failure) -> None:
        """Prefer others for a while when a failure speaks against the replica."""
        if cause.reason in REPLICA_FAULTS:
            self._pool.failed(
                replica,
                asked_s=self._asked_s(cause),
                ask_again=cause.reason is not Reason.OVERLOADED,
            )
        if self._pool.closed:
            raise WeirError(CLOSED)

    def _delay_s(
        self, cause: Failure, backoff: Backoff, attempts: int, deadline: float
    ) -> float | None:
        """Return the delay in seconds before the next attempt; None when the deadline is nearer."""
        timing = self._timing
        delay_s = backoff.delay_s(attempts, timing.chance)
        if not self._pool.fresh:  # the next attempt meets one that has asked for time
            delay_s = max(delay_s, self._asked_s(cause) * timing.chance.uniform(1.0, 1.25))
        return None if timing.clock() + delay_s >= deadline else delay_s

    def _explain_cancellation(self) -> None:
        """Raise SHUTTING_DOWN when the call was cancelled by closing its channel, not its task."""
        task = asyncio.current_task()
        if self._pool.closed and task is not None and not task.cancelling():
            raise WeirError(CLOSED) from None

    def _asked_s(self, cause: Failure) -> float:
        return min((cause.retry_after_ms or 0) / 1000, self._pool_settings.retry_after_most_s)
