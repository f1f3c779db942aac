"""The signs of life of one generation: progress, waiting, and the answers to pause and resume.

Owns: when each is due. Does not own: whether a generation waits (`gate`), locking (`run`).
Enforces: WEIR-230 (progress at most once a second; a wait is told once, when nothing of the
generation is in progress any more, and so is a pause: no media lies between paused and resumed).
"""

from __future__ import annotations

from contracts.generation import Paused, Progress, Resumed, Waiting, WaitReason
from services.video.outbox import Outbox

PROGRESS_INTERVAL_S = 1.0


class Signs:
    """What is told beside chunks. `now` is in seconds and never goes back."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._told: WaitReason | None = None
        self._progress_at = float("-inf")
        self._pauses = 0

    def step(self, chunk: int, steps: int, now: float) -> None:
        """`steps` denoising steps of a chunk are done."""
        if now - self._progress_at >= PROGRESS_INTERVAL_S:
            self._progress_at = now
            self._told = None
            self._outbox.post(Progress(chunk, steps))

    def chunk_left(self) -> None:
        """A chunk has been posted, which ends every wait."""
        self._told = None

    def pause(self) -> None:
        """A pause was asked for; it is answered when the generation stands still."""
        self._pauses += 1

    def resume(self) -> None:
        """Answer a resume; a pause that has not come about yet is answered before it."""
        self._answer_pauses()
        self._outbox.post(Resumed())

    def stands_still(self, reason: WaitReason) -> None:
        """Nothing is in progress and the next chunk waits for `reason`."""
        if reason is WaitReason.PAUSE:
            self._answer_pauses()
        if self._told is not reason:
            self._told = reason
            self._outbox.post(Waiting(reason))

    def _answer_pauses(self) -> None:
        for _ in range(self._pauses):
            self._outbox.post(Paused())
        self._pauses = 0
