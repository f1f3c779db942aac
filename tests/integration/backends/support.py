"""How the backend tests reach their subject: fast settings, requests, and whole streams.

Owns: the arrangement of a `TtsBackend` for tests and the collecting of what it gives.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from contracts.errors import Failure, WeirError
from contracts.identity import SegmentIdentity
from contracts.modality import AudioChunk, AudioEncoding, AudioFormat, IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.backends.retry import Timing
from services.edge.backends.settings import PoolSettings, TtsBackendSettings
from services.edge.backends.targets import Address, Target
from services.edge.backends.tts import TtsBackend
from tests.integration.backends.scripted import PATIENCE_S

# Looks come only when a test asks for one, but failing ones are repeated at once.
QUIET_POOL = PoolSettings(
    refresh_interval_s=3600.0,
    probe_spacing_s=0.001,
    probe_backoff_first_s=0.005,
    probe_backoff_most_s=0.02,
    resolve_interval_s=3600.0,
)

REQUEST = SegmentRequest(
    identity=SegmentIdentity("session-1", "request-1", 0, 0),
    text=" Hello.",
    output=AudioFormat(AudioEncoding.PCM, 0),
)


@dataclass
class FakeTime:
    """A clock that only the backend's own waits move; remembers them."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    async def sleep(self, delay_s: float) -> None:
        """Wait without waiting."""
        self.waits.append(delay_s)
        self.now += delay_s

    def timing(self) -> Timing:
        """Return it as the backend takes it, with chance that repeats."""
        return Timing(lambda: self.now, self.sleep, random.Random(7))


async def nothing_resolves(target: Target) -> tuple[Address, ...]:
    """Stand for a name service that a test must not need."""
    raise AssertionError(f"no test of this file resolves {target.host}")


@asynccontextmanager
async def backend(
    targets: Sequence[str],
    *,
    ready: int | None = None,
    pool: PoolSettings = QUIET_POOL,
    timing: Timing | None = None,
    known_profiles: Collection[str] = ("zh_en_special_v1",),
    **settings: Any,
) -> AsyncIterator[TtsBackend]:
    """Run a backend until `ready` replicas (by default all) have declared themselves."""
    async with TtsBackend(
        replace(TtsBackendSettings(targets=tuple(targets)), **settings),
        known_profiles=known_profiles,
        pool=pool,
        timing=timing,
        resolve=nothing_resolves,
    ) as subject:
        wanted = len(targets) if ready is None else ready
        assert await subject.wait_ready(PATIENCE_S, replicas=wanted)
        yield subject


async def collect(
    subject: TtsBackend,
    request: SegmentRequest = REQUEST,
    *,
    deadline_s: float = 30.0,
    retry_after_accept: bool = False,
) -> list[IdentifiedUpdate]:
    """Return every update of a segment that is spoken to its end."""
    async with aclosing(
        subject.synthesize(request, deadline_s=deadline_s, retry_after_accept=retry_after_accept)
    ) as updates:
        return [update async for update in updates]


async def failure_of(
    subject: TtsBackend, request: SegmentRequest = REQUEST, **options: Any
) -> Failure:
    """Return the failure of a segment that must fail."""
    with pytest.raises(WeirError) as caught:
        await collect(subject, request, **options)
    return caught.value.failure


def audio_of(updates: Sequence[IdentifiedUpdate]) -> bytes:
    """Return the bytes of all audio chunks."""
    return b"".join(u.update.data for u in updates if isinstance(u.update, AudioChunk))
