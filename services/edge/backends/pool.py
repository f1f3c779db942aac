"""The replicas of one kind of backend, and which of them takes the next request.

Owns: one channel per replica, following names to their addresses, asking every replica again and
again what it declares, counting what is outstanding, and the choice. Does not own: what is asked or
declared (the probe that is passed in), or whether a request is tried again (`tts`). Enforces:
WEIR-132 (only a replica that has declared itself is chosen; one that failed is avoided for a while,
never shut out for good).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Generic

import grpc.aio

from services.edge.backends.replica import D, Replica
from services.edge.backends.retry import Alarm, Timing
from services.edge.backends.settings import PoolSettings
from services.edge.backends.targets import MAX_TARGETS, Address, Resolve, Target
from services.runtime.logging import get_logger

_log = get_logger(__name__)

Probe = Callable[[Replica[D]], Awaitable[D]]
"""Asks a replica what it declares. Raises AioRpcError or ValueError when there is no answer."""

OpenChannel = Callable[[Address], grpc.aio.Channel]


class ReplicaPool(Generic[D]):
    """Keeps the replicas of `targets`. Use between `start` and `aclose`."""

    def __init__(
        self,
        targets: Sequence[Target],
        settings: PoolSettings,
        probe: Probe[D],
        *,
        open_channel: OpenChannel,
        resolve: Resolve,
        timing: Timing,
    ) -> None:
        self._targets = tuple(targets)
        self._settings = settings
        self._probe = probe
        self._open_channel = open_channel
        self._resolve = resolve
        self._timing = timing
        self._members: dict[Target, tuple[Address, ...]] = {}
        self._replicas: dict[Address, Replica[D]] = {}
        self._watches: dict[Address, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._names: list[Alarm] = []
        self._turn = 0
        self._change = asyncio.Event()
        self.closed = False

    def start(self) -> None:
        """Start to follow the targets; needs a running event loop, returns at once."""
        for target in self._targets:
            address = target.address
            if address is None:
                self._spawn(self._follow(target), f"resolve {target.host}")
            else:
                self._members[target] = (address,)
        self._apply()

    async def aclose(self) -> None:
        """Stop following and close every channel; calls that are still open are cancelled."""
        self.closed = True
        for task in (*self._tasks, *self._watches.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._watches.values(), return_exceptions=True)
        await asyncio.gather(*(replica.channel.close() for replica in self._replicas.values()))
        self._replicas.clear()
        self._notify()

    @property
    def replicas(self) -> tuple[Replica[D], ...]:
        """All replicas in the order of their addresses, ready or not."""
        return tuple(self._replicas.values())

    @property
    def ready(self) -> tuple[Replica[D], ...]:
        """The replicas that have declared themselves."""
        return tuple(r for r in self._replicas.values() if r.declared is not None)

    @property
    def fresh(self) -> bool:
        """True when some ready replica has not failed a moment ago."""
        now = self._timing.clock()
        return any(replica.avoid_until <= now for replica in self.ready)

    def pick(self, tried: Collection[Address] = ()) -> Replica[D] | None:
        """Choose a ready replica for the next attempt; None when there is none.

        Those that failed lately come last, then those in `tried`, then the busier ones; among
        equals the one that was used least recently is chosen.
        """
        now = self._timing.clock()
        # WEIR-132: avoiding is an order, not an exclusion, so the only replica is still tried.
        return min(
            self.ready,
            key=lambda r: (r.avoid_until > now, r.address in tried, r.outstanding, r.last_used),
            default=None,
        )

    def lease(self, replica: Replica[D]) -> AbstractContextManager[None]:
        """Count one outstanding request for as long as the block lasts."""
        self._turn += 1
        return replica.lease(self._turn)

    def failed(self, replica: Replica[D], *, asked_s: float, ask_again: bool) -> None:
        """The replica failed a request and asked for `asked_s` seconds of peace: prefer others.

        With `ask_again` it is asked at once what it declares, if it still does.
        """
        timing = self._timing
        avoid_s = self._settings.outlier_backoff.delay_s(replica.failures + 1, timing.chance)
        replica.failed(timing.clock() + max(avoid_s, asked_s))
        if ask_again:
            replica.alarm.ring()

    def refresh(self) -> None:
        """Look up every name and ask every replica again now, not at the next interval."""
        for alarm in (*self._names, *(replica.alarm for replica in self._replicas.values())):
            alarm.ring()

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `condition` of this pool holds; False when it does not within `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await self._change.wait()
        except TimeoutError:
            return condition()
        return True

    def _notify(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, target: Target) -> None:
        """Keep the addresses of a name; while nobody answers, the last known ones stay."""
        failures = 0
        alarm = Alarm(self._settings.probe_spacing_s)
        self._names.append(alarm)
        while True:
            try:
                async with asyncio.timeout(self._settings.probe_timeout_s):
                    found = await self._resolve(target)
                if not found:
                    raise OSError("the answer is empty")
            except (OSError, TimeoutError, UnicodeError) as error:  # the last: no valid name
                failures += 1
                if failures == 1:
                    _log.warning("name_not_resolved", host=target.host, error=error)
                delay_s = self._settings.probe_backoff.delay_s(failures, self._timing.chance)
            else:
                failures = 0
                self._members[target] = found[:MAX_TARGETS]
                self._apply()
                delay_s = self._settings.resolve_interval_s
            await alarm.wait(delay_s)

    def _apply(self) -> None:
        """Open replicas for new addresses, retire those whose address is gone."""
        wanted = dict.fromkeys(
            address for addresses in self._members.values() for address in addresses
        )
        for address in [known for known in self._replicas if known not in wanted]:
            _log.info("replica_gone", replica=str(address))
            self._watches.pop(address).cancel()
            self._spawn(_retire(self._replicas.pop(address)), f"retire {address}")
        for address in wanted:
            if address not in self._replicas:
                replica: Replica[D] = Replica(
                    address,
                    self._open_channel(address),
                    Alarm(self._settings.probe_spacing_s),
                )
                self._replicas[address] = replica
                self._watches[address] = asyncio.create_task(
                    self._watch(replica), name=f"watch {address}"
                )
        self._notify()

    async def _watch(self, replica: Replica[D]) -> None:
        """Ask one replica again and again what it declares."""
        failures = 0
        while True:
            declared = await self._ask(replica)
            if declared != replica.declared:
                replica.declared = declared
                self._notify()
            if declared is None:
                failures += 1
                delay_s = self._settings.probe_backoff.delay_s(failures, self._timing.chance)
            else:
                failures = 0
                delay_s = self._settings.refresh_interval_s
            await replica.alarm.wait(delay_s)

    async def _ask(self, replica: Replica[D]) -> D | None:
        known = replica.declared is not None
        try:
            declared = await self._probe(replica)
        except grpc.aio.AioRpcError as error:
            if known:
                _log.warning("replica_lost", replica=str(replica.address), code=error.code().name)
            return None
        except ValueError as error:
            if replica.problem != str(error):
                replica.problem = str(error)
                _log.error("replica_refused", replica=str(replica.address), problem=str(error))
            return None
        except Exception as error:  # a fault in the probe must not end the watch of this replica
            _log.error("replica_probe_failed", replica=str(replica.address), error=error)
            return None
        replica.problem = ""
        if not known:
            _log.info("replica_ready", replica=str(replica.address))
        return declared


async def _retire(replica: Replica[D]) -> None:
    """Close a channel whose address is gone as soon as its last request has ended."""
    try:
        await replica.idle.wait()
    finally:
        await replica.channel.close()
