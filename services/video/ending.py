"""The ways in which a generation ends.

Owns: their names. Does not own: which one it is (`services.video.run`).
"""

from __future__ import annotations

from enum import Enum

from contracts.errors import INTERNAL_MESSAGE, Reason, failure

INTERNAL = failure(Reason.INTERNAL, INTERNAL_MESSAGE)
"""What is told about every fault of a model, an encoder or our own."""


class Ending(Enum):
    """Why no further chunk is begun."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class LastWords(Enum):
    """How far the last words of a generation are."""

    NOT_YET = "not yet"
    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"
