"""Failures as messages of the video endpoint.

Owns: the error message of a failure, the close code of one that ends a session, and the sentences
that several handlers share. Does not own: the registry of reasons (`contracts.errors`), when an
error is sent (`core`).
"""

from __future__ import annotations

from msgspec import UNSET

from contracts.errors import INTERNAL_MESSAGE, Failure, Reason, failure
from services.edge.video.events import SendMessage
from services.edge.video.messages import ErrorMessage
from services.edge.video.terms import VideoLimits

POLICY_VIOLATION, INTERNAL_ERROR, TRY_AGAIN_LATER = 1008, 1011, 1013

UNREACHABLE = failure(
    Reason.BACKEND_UNAVAILABLE, "No video service can be reached.", retry_after_ms=1000
)

NOT_TAKEN = failure(Reason.SESSION_STATE, "The video ended before the interaction was taken in.")
BROKEN = failure(Reason.INTERNAL, INTERNAL_MESSAGE)
"""The service has told what cannot be."""


def error_message(
    cause: Failure, *, request_id: str | None = None, event_id: str | None = None
) -> SendMessage:
    """Return the error message of a failure, with the interaction it belongs to."""
    return SendMessage(
        ErrorMessage(
            message=cause.message,
            code=cause.websocket_code,
            request_id=UNSET if request_id is None else request_id,
            event_id=UNSET if event_id is None else event_id,
            retry_after_ms=UNSET if cause.retry_after_ms is None else cause.retry_after_ms,
        )
    )


def terminal_message(
    cause: Failure,
    request_id: str,
    superseded: tuple[str, ...],
    unfinished: tuple[str, ...],
) -> SendMessage:
    """Return the error that ends a generation, with what became of its interactions."""
    return SendMessage(
        ErrorMessage(
            message=cause.message,
            code=cause.websocket_code,
            request_id=request_id,
            retry_after_ms=UNSET if cause.retry_after_ms is None else cause.retry_after_ms,
            superseded_event_ids=superseded,
            unfinished_event_ids=unfinished,
        )
    )


def close_code(cause: Failure, *, admitted: bool) -> int:
    """Return the close code of a failure that ends the session."""
    registered = cause.rule.close_code
    if admitted and registered == TRY_AGAIN_LATER:
        # That code is for admission: what was admitted must not be begun again unasked.
        return INTERNAL_ERROR
    if registered is not None:
        return registered
    if not admitted and cause.reason is Reason.BACKEND_UNAVAILABLE:
        return TRY_AGAIN_LATER
    # What the registry gives no code for was the peer's fault only before it was admitted.
    return INTERNAL_ERROR


def wrong_state(message: str) -> Failure:
    """Return the failure of a message that is valid, but not now."""
    return failure(Reason.SESSION_STATE, message)


def unread_keys(reported: tuple[str, ...]) -> Failure:
    """Return the refusal of a message with keys that mean nothing, by a strict operator."""
    return failure(Reason.UNSUPPORTED_OPTION, "The message was not taken: " + "; ".join(reported))


def too_many(limits: VideoLimits) -> Failure:
    """Return the refusal of an interaction beyond those that may wait for their answer."""
    count = limits.pending_interactions
    text = f"{count} interactions wait for an answer, which is the limit."
    return failure(Reason.OVERLOADED, text, retry_after_ms=1000)


def no_start(limits: VideoLimits) -> Failure:
    """Return why a session ends that nothing has started."""
    text = f"No session.start arrived within {limits.start_timeout_s:g} s."
    return failure(Reason.IDLE_TIMEOUT, text)


def no_progress(limits: VideoLimits) -> Failure:
    """Return why a generation is given up that shows no sign of life."""
    text = f"The video service made no progress for {limits.stall_timeout_s:g} s."
    return failure(Reason.DEADLINE_EXCEEDED, text)


def no_report(limits: VideoLimits) -> Failure:
    """Return why a session ends whose viewer keeps the video waiting."""
    text = f"The video stood still for {limits.gated_timeout_s:g} s without session.playback."
    return failure(Reason.STALL_TIMEOUT, text)
