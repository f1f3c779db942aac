"""How prompts turn into one another, chunk by chunk.

Owns: the arithmetic of transitions and which interaction appears in which list of which chunk. Does
not own: what a prompt state is (the adapter's embeddings; a blend function is passed in), encoding,
idempotency (`ledger`), locking (the engine). Enforces: WEIR-143 (a target of N chunks is reached
in the Nth affected chunk, with progress k/N), WEIR-144 (the newest target wins, from the state
resolved at its boundary), WEIR-145 (every id ends exactly once: completed, superseded, unfinished).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")

Blend = Callable[[P, P, float], P]
"""`blend(source, target, progress)` with 0 < progress < 1."""


@dataclass(frozen=True, slots=True)
class Target(Generic[P]):
    """Where an interaction wants the prompt to go, and over how many chunks (0: at once)."""

    event_id: str
    value: P
    transition_chunks: int

    def __post_init__(self) -> None:
        if not self.event_id or self.transition_chunks < 0:
            raise ValueError("a target has an event id and a count of chunks from 0")


@dataclass(frozen=True, slots=True)
class Boundary(Generic[P]):
    """What holds for one generation chunk.

    `value` is the prompt state the chunk is generated with. `progress` is that of the running
    transition, None when there is none. The lists name interactions by id.
    """

    value: P
    progress: float | None = None
    started: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left when a generation ends: superseded but never named, and never completed."""

    superseded: tuple[str, ...]
    unfinished: tuple[str, ...]


@dataclass(slots=True)
class _Transition(Generic[P]):
    target: Target[P]
    source: P
    step: int = 0

    @property
    def reached(self) -> bool:
        return self.step >= self.target.transition_chunks

    @property
    def progress(self) -> float:
        return 1.0 if self.reached else self.step / self.target.transition_chunks

    def value(self, blend: Blend[P]) -> P:
        # WEIR-143: the last chunk uses the target itself, not a blend that comes close.
        if self.reached:
            return self.target.value
        return blend(self.source, self.target.value, self.progress)


class Timeline(Generic[P]):
    """The prompt of one generation. Not thread-safe: the engine holds the lock.

    `submit` may be called at any time between boundaries, `next_boundary` once per chunk.
    """

    def __init__(self, initial: P, blend: Blend[P]) -> None:
        self._blend = blend
        self._value = initial
        self._running: _Transition[P] | None = None
        self._pending: Target[P] | None = None
        self._unnamed: list[str] = []

    @property
    def pending(self) -> Target[P] | None:
        """The target that takes effect at the next boundary."""
        return self._pending

    def submit(self, target: Target[P]) -> None:
        """Make `target` the pending one; an older pending target is superseded unseen."""
        if self._pending is not None:
            self._unnamed.append(self._pending.event_id)
        self._pending = target

    def next_boundary(self) -> Boundary[P]:
        """Advance to the next generation chunk and return what it is generated with."""
        running, pending = self._running, self._pending
        if running is not None:
            running.step += 1
            self._value = running.value(self._blend)
        started: tuple[str, ...] = ()
        if pending is not None:
            if running is not None:
                # WEIR-144: replaced at its boundary, even where it would have ended there.
                self._unnamed.append(running.target.event_id)
            running = _Transition(pending, self._value, step=1)
            self._value = running.value(self._blend)
            self._pending = None
            started = (pending.event_id,)
        superseded, self._unnamed = tuple(self._unnamed), []
        if running is None:
            return Boundary(self._value, superseded=superseded)
        active = (running.target.event_id,)
        self._running = None if running.reached else running
        return Boundary(
            self._value,
            progress=running.progress,
            started=started,
            active=active,
            completed=active if running.reached else (),
            superseded=superseded,
        )

    def finish(self) -> Remainder:
        """Return the ids that no chunk has ended (WEIR-145)."""
        left = [
            *([self._running.target.event_id] if self._running else []),
            *([self._pending.event_id] if self._pending else []),
        ]
        remainder = Remainder(tuple(self._unnamed), tuple(left))
        self._running, self._pending, self._unnamed = None, None, []
        return remainder
