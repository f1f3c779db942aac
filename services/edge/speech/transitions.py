"""Which events a speech session takes in which state, and where they may lead.

Owns: the states and the one transition table; the diagram in the docs is drawn from it. Does not
own: what a handler does (`core`). Enforces: WEIR-153 (the table is total over states and events,
and no handler leads where the table does not say).
"""

from __future__ import annotations

from enum import Enum

from services.edge.session_events import Transition, transition_table
from services.edge.speech.events import (
    CapabilitiesChanged,
    ClockReached,
    FrameRejected,
    PeerVanished,
    SegmentFailed,
    SegmentUpdated,
    ShutdownRequested,
)
from services.edge.speech.messages import (
    InputCancel,
    InputCommit,
    InputDone,
    InputExplain,
    InputText,
    SessionClose,
    SessionConfig,
    SessionPing,
)


class State(Enum):
    """Where a session stands."""

    UNCONFIGURED = "unconfigured"
    READY = "ready"
    RECEIVING = "receiving"
    FAILED = "failed"
    FINISHING = "finishing"
    CLOSED = "closed"


_UNCONFIGURED, _READY, _RECEIVING = State.UNCONFIGURED, State.READY, State.RECEIVING
_FAILED, _FINISHING, _CLOSED = State.FAILED, State.FINISHING, State.CLOSED


def _to(handler: str, *targets: State) -> Transition[State]:
    return Transition(handler, frozenset(targets))


# What ends an utterance leads to CLOSED instead of READY once the process is shutting down.
_ROWS: dict[type, dict[State, Transition[State]]] = {
    SessionConfig: {
        _UNCONFIGURED: _to("_configure", _READY, _CLOSED),
        _READY: _to("_configure"),
        _RECEIVING: _to("_refuse_config"),
        _FAILED: _to("_refuse_config"),
        _FINISHING: _to("_refuse_config"),
    },
    InputText: {
        _UNCONFIGURED: _to("_expect_config", _CLOSED),
        _READY: _to("_open_utterance", _RECEIVING, _FAILED),
        _RECEIVING: _to("_feed", _FAILED),
        _FAILED: _to("_refuse_failed_text"),
        _FINISHING: _to("_refuse_input"),
    },
    InputDone: {
        _UNCONFIGURED: _to("_expect_config", _CLOSED),
        _READY: _to("_end_nothing"),
        _RECEIVING: _to("_end_input", _FINISHING, _READY, _CLOSED),
        _FAILED: _to("_end_failed_input", _FINISHING, _READY, _CLOSED),
        _FINISHING: _to("_refuse_input"),
    },
    InputCancel: {
        _UNCONFIGURED: _to("_expect_config", _CLOSED),
        _READY: _to("_cancel_nothing"),
        _RECEIVING: _to("_cancel", _READY, _CLOSED),
        _FAILED: _to("_cancel", _READY, _CLOSED),
        _FINISHING: _to("_cancel", _READY, _CLOSED),
    },
    SessionPing: {
        _UNCONFIGURED: _to("_expect_config", _CLOSED),
        _READY: _to("_pong_idle"),
        _RECEIVING: _to("_pong"),
        _FAILED: _to("_pong"),
        _FINISHING: _to("_pong"),
    },
    InputCommit: {
        _UNCONFIGURED: _to("_expect_config", _CLOSED),
        _READY: _to("_not_offered"),
        _RECEIVING: _to("_not_offered"),
        _FAILED: _to("_not_offered"),
        _FINISHING: _to("_not_offered"),
    },
    InputExplain: {
        _UNCONFIGURED: _to("_expect_config", _CLOSED),
        _READY: _to("_not_offered"),
        _RECEIVING: _to("_not_offered"),
        _FAILED: _to("_not_offered"),
        _FINISHING: _to("_not_offered"),
    },
    SessionClose: {
        _UNCONFIGURED: _to("_close_politely", _CLOSED),
        _READY: _to("_close_politely", _CLOSED),
        _RECEIVING: _to("_close_politely", _CLOSED),
        _FAILED: _to("_close_politely", _CLOSED),
        _FINISHING: _to("_close_politely", _CLOSED),
    },
    FrameRejected: {
        _UNCONFIGURED: _to("_reject_first", _CLOSED),
        _READY: _to("_reject"),
        _RECEIVING: _to("_reject"),
        _FAILED: _to("_reject"),
        _FINISHING: _to("_reject"),
    },
    CapabilitiesChanged: {
        _UNCONFIGURED: _to("_learn"),
        _READY: _to("_learn"),
        _RECEIVING: _to("_learn"),
        _FAILED: _to("_learn"),
        _FINISHING: _to("_learn"),
    },
    # With no segment in flight an update answers something cancelled, and is dropped.
    SegmentUpdated: {
        _UNCONFIGURED: _to("_ignore"),
        _READY: _to("_ignore"),
        _RECEIVING: _to("_advance", _FAILED),
        _FAILED: _to("_advance"),
        _FINISHING: _to("_advance", _READY, _CLOSED),
    },
    SegmentFailed: {
        _UNCONFIGURED: _to("_ignore"),
        _READY: _to("_ignore"),
        _RECEIVING: _to("_give_up", _FAILED),
        _FAILED: _to("_give_up"),
        _FINISHING: _to("_give_up", _READY, _CLOSED),
    },
    ClockReached: {
        _UNCONFIGURED: _to("_time_out", _CLOSED),
        _READY: _to("_time_out", _CLOSED),
        _RECEIVING: _to("_time_out", _CLOSED),
        _FAILED: _to("_time_out", _CLOSED),
        _FINISHING: _to("_ignore"),  # there is always work left here, so the clock stands
    },
    PeerVanished: {
        _UNCONFIGURED: _to("_vanish", _CLOSED),
        _READY: _to("_vanish", _CLOSED),
        _RECEIVING: _to("_vanish", _CLOSED),
        _FAILED: _to("_vanish", _CLOSED),
        _FINISHING: _to("_vanish", _CLOSED),
    },
    ShutdownRequested: {
        _UNCONFIGURED: _to("_shut_down", _CLOSED),
        _READY: _to("_shut_down", _CLOSED),
        _RECEIVING: _to("_shut_down", _CLOSED),
        _FAILED: _to("_shut_down", _CLOSED),
        _FINISHING: _to("_shut_down", _CLOSED),
    },
}

TRANSITIONS = transition_table(_ROWS, _CLOSED)
