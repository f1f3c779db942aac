"""Failures as messages of the speech endpoint.

Owns: the error message of a failure, and the sentences that several handlers share. Does not own:
the registry of reasons (`contracts.errors`), when an error is sent (`core`).
"""

from __future__ import annotations

from msgspec import UNSET

from contracts.errors import Failure, Reason, failure
from services.edge.speech.events import SendMessage
from services.edge.speech.messages import ErrorMessage


def error_message(cause: Failure, utterance_index: int | None = None) -> SendMessage:
    """Return the error message of a failure, with the utterance it belongs to."""
    return SendMessage(
        ErrorMessage(
            message=cause.message,
            code=cause.websocket_code,
            utterance_index=UNSET if utterance_index is None else utterance_index,
            retry_after_ms=UNSET if cause.retry_after_ms is None else cause.retry_after_ms,
        )
    )


def wrong_state(message: str) -> SendMessage:
    """Return the error for a message that is valid, but not now."""
    return error_message(failure(Reason.SESSION_STATE, message))
