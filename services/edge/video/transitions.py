"""Which events a video session takes in which state, and where they may lead.

Owns: the states and the one transition table; the diagram in the docs is drawn from it. Does not
own: what a handler does (`core`). Enforces: WEIR-153 (the table is total over states and events,
and no handler leads where the table does not say).
"""

from __future__ import annotations

from enum import Enum

from services.edge.session_events import (
    ClockReached,
    FrameRejected,
    PeerVanished,
    ShutdownRequested,
    Transition,
    transition_table,
)
from services.edge.video.events import (
    CapabilitiesChanged,
    ChunkDrained,
    GenerationFailed,
    GenerationUpdated,
)
from services.edge.video.messages import (
    SessionInteraction,
    SessionPause,
    SessionPing,
    SessionPlayback,
    SessionResume,
    SessionStart,
    SessionStop,
)


class State(Enum):
    """Where a session stands."""

    UNSTARTED = "unstarted"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    CLOSED = "closed"


_UNSTARTED, _STARTING, _RUNNING = State.UNSTARTED, State.STARTING, State.RUNNING
_STOPPING, _CLOSED = State.STOPPING, State.CLOSED


def _to(handler: str, *targets: State) -> Transition[State]:
    return Transition(handler, frozenset(targets))


_ROWS: dict[type, dict[State, Transition[State]]] = {
    SessionStart: {
        _UNSTARTED: _to("_start", _STARTING, _CLOSED),
        _STARTING: _to("_refuse_start"),
        _RUNNING: _to("_refuse_start"),
        _STOPPING: _to("_refuse_start"),
    },
    SessionInteraction: {
        _UNSTARTED: _to("_refuse_interaction"),
        _STARTING: _to("_refuse_interaction"),
        _RUNNING: _to("_interact"),
        _STOPPING: _to("_refuse_interaction"),
    },
    SessionStop: {
        _UNSTARTED: _to("_refuse_early"),
        _STARTING: _to("_stop_early"),
        _RUNNING: _to("_stop", _STOPPING),
        _STOPPING: _to("_ignore"),
    },
    SessionPing: {
        _UNSTARTED: _to("_pong_early"),
        _STARTING: _to("_pong_early"),
        _RUNNING: _to("_pong"),
        _STOPPING: _to("_pong"),
    },
    SessionPlayback: {
        _UNSTARTED: _to("_refuse_early"),
        _STARTING: _to("_refuse_early"),
        _RUNNING: _to("_report_playback"),
        _STOPPING: _to("_ignore"),  # the last chunk is made; a viewer may still report it
    },
    SessionPause: {
        _UNSTARTED: _to("_refuse_early"),
        _STARTING: _to("_refuse_early"),
        _RUNNING: _to("_pause"),
        _STOPPING: _to("_refuse_stopped"),
    },
    SessionResume: {
        _UNSTARTED: _to("_refuse_early"),
        _STARTING: _to("_refuse_early"),
        _RUNNING: _to("_resume"),
        _STOPPING: _to("_refuse_stopped"),
    },
    FrameRejected: {
        _UNSTARTED: _to("_reject_first", _CLOSED),
        _STARTING: _to("_reject"),
        _RUNNING: _to("_reject"),
        _STOPPING: _to("_reject"),
    },
    CapabilitiesChanged: {
        _UNSTARTED: _to("_learn"),
        _STARTING: _to("_learn"),
        _RUNNING: _to("_learn"),
        _STOPPING: _to("_learn"),
    },
    # Before a generation was asked for there is none that could tell anything.
    GenerationUpdated: {
        _UNSTARTED: _to("_ignore"),
        _STARTING: _to("_admit", _RUNNING, _STOPPING, _CLOSED),
        _RUNNING: _to("_advance", _CLOSED),
        _STOPPING: _to("_advance", _CLOSED),
    },
    GenerationFailed: {
        _UNSTARTED: _to("_ignore"),
        _STARTING: _to("_give_up", _CLOSED),
        _RUNNING: _to("_give_up", _CLOSED),
        _STOPPING: _to("_give_up", _CLOSED),
    },
    ChunkDrained: {
        _UNSTARTED: _to("_ignore"),
        _STARTING: _to("_ignore"),
        _RUNNING: _to("_give_credit"),
        _STOPPING: _to("_give_credit"),
    },
    ClockReached: {
        _UNSTARTED: _to("_time_out_start", _CLOSED),
        _STARTING: _to("_time_out", _CLOSED),
        _RUNNING: _to("_time_out", _STOPPING, _CLOSED),
        _STOPPING: _to("_time_out", _CLOSED),
    },
    PeerVanished: {
        _UNSTARTED: _to("_vanish", _CLOSED),
        _STARTING: _to("_vanish", _CLOSED),
        _RUNNING: _to("_vanish", _CLOSED),
        _STOPPING: _to("_vanish", _CLOSED),
    },
    ShutdownRequested: {
        _UNSTARTED: _to("_shut_down", _CLOSED),
        _STARTING: _to("_shut_down", _CLOSED),
        _RUNNING: _to("_shut_down", _CLOSED),
        _STOPPING: _to("_shut_down", _CLOSED),
    },
}

TRANSITIONS = transition_table(_ROWS, _CLOSED)
