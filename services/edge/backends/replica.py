"""One replica: its channel, what it declares, and how it has done lately.

Owns: the numbers that the choice between replicas is made by. Does not own: the choice, or when a
replica is asked (`pool`). Enforces: WEIR-132 (one that failed comes last for a while).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import grpc.aio

from services.edge.backends.retry import Alarm
from services.edge.backends.targets import Address

D = TypeVar("D")


class Replica(Generic[D]):
    """One address with its channel; `D` is what a replica declares about itself."""

    __slots__ = (
        "address",
        "alarm",
        "avoid_until",
        "channel",
        "declared",
        "failures",
        "idle",
        "last_used",
        "outstanding",
        "problem",
    )

    def __init__(self, address: Address, channel: grpc.aio.Channel, alarm: Alarm) -> None:
        self.address = address
        self.channel = channel
        self.alarm = alarm
        """Ends the wait before the replica is asked again."""
        self.declared: D | None = None
        """What it declared when it was last asked; None: not reachable, so not ready."""
        self.problem = ""
        """What was wrong with its last declaration, to be logged once."""
        self.outstanding = 0
        """Requests in progress."""
        self.idle = asyncio.Event()
        """Set while nothing is outstanding."""
        self.idle.set()
        self.last_used = 0
        """Turn in which it last took a request, to choose fairly among equals."""
        self.failures = 0
        """Failures in a row."""
        self.avoid_until = 0.0
        """Time until which others are preferred."""

    @contextmanager
    def lease(self, turn: int) -> Iterator[None]:
        """Count one outstanding request for as long as the block lasts."""
        self.last_used = turn
        self.outstanding += 1
        self.idle.clear()
        try:
            yield
        finally:
            self.outstanding -= 1
            if self.outstanding == 0:
                self.idle.set()

    def succeeded(self) -> None:
        """Note that it took a request: it is no outlier any more."""
        self.failures = 0
        self.avoid_until = 0.0

    def failed(self, avoid_until: float) -> None:
        """Note one more failure in a row, after which others are preferred for a while."""
        self.failures += 1
        self.avoid_until = avoid_until
