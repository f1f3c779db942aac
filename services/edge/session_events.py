"""What happens to any session, whatever it carries, and how each of them ends.

Owns: the events and actions that the sessions of all endpoints share, and the table of transitions
as a type. Does not own: the events of one endpoint (its `events`), any state or behaviour.
Enforces: WEIR-153 (a table is total: every event has its row, and the last state takes all).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Generic, TypeVar

from contracts.errors import Failure

State = TypeVar("State", bound=Enum)


@dataclass(frozen=True, slots=True)
class FrameRejected:
    """The peer sent something that is not a valid message."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class ClockReached:
    """The driver's timer went off; early and late ones do no harm."""


@dataclass(frozen=True, slots=True)
class PeerVanished:
    """The connection is gone."""


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The process is ending. Not final: what is under way may end. Final: end at once."""

    final: bool


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection. `discard`: what is queued is not sent any more."""

    code: int
    reason: str
    discard: bool = False


class LocalProtocolError(Exception):
    """Our own driver did something that the session's rules do not allow."""


@dataclass(frozen=True, slots=True)
class Transition(Generic[State]):
    """The name of the session's handler, and the states it may lead to beside staying."""

    handler: str
    targets: frozenset[State] = frozenset()


Table = Mapping[tuple[State, type], Transition[State]]


def transition_table(
    rows: Mapping[type, Mapping[State, Transition[State]]], closed: State
) -> Table[State]:
    """Return the table of `rows`; in the state `closed` every event causes nothing."""
    stays: Transition[State] = Transition("_ignore")
    return MappingProxyType(
        {
            (state, event): transition
            for event, row in rows.items()
            for state, transition in {**row, closed: stays}.items()
        }
    )


def transition_of(table: Table[State], state: State, subject: object) -> Transition[State]:
    """Return the entry of an event. Raises LocalProtocolError for one that the table lacks."""
    transition = table.get((state, type(subject)))
    if transition is None:
        raise LocalProtocolError(f"{state.value} knows no {type(subject).__name__}")
    return transition


def check_move(transition: Transition[State], before: State, after: State) -> None:
    """Raise LocalProtocolError when a handler led where its entry does not say."""
    if after is not before and after not in transition.targets:
        raise LocalProtocolError(f"{before.value} does not lead to {after.value}")
