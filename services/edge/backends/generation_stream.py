"""The order of one generation's updates, checked before anybody relies on it.

Owns: what may follow what, the counts of the terminal, the credits. Does not own: reading messages
(`generation_wire`), which interactions a chunk may name (the session). Enforces: IO-INV-101
(accepted first, chunks in order, one terminal, the outcome last and nothing after it), WEIR-178 (a
replica never sends more chunks than it was given credits for).
"""

from __future__ import annotations

from contracts.generation import (
    Accepted,
    Chunk,
    GenerationUpdate,
    Outcome,
    VideoCompleted,
)


class StreamViolationError(ValueError):
    """A replica sent what the contract does not allow."""


class GenerationStream:
    """The updates of one call so far. `credits` is how many chunks may come at first."""

    __slots__ = (
        "_bytes",
        "_completed",
        "_credits",
        "_frames",
        "_media",
        "_payloads",
        "_trailer",
        "accepted",
        "ended",
    )

    def __init__(self, credits: int) -> None:
        self.accepted = False
        """True once the replica has taken the generation."""
        self.ended = False
        """True once the outcome has come."""
        self._credits = credits
        self._payloads = self._media = self._frames = self._bytes = 0
        self._trailer = self._completed = False

    def grant(self, chunks: int) -> None:
        """Note that credits were sent."""
        self._credits += chunks

    def receive(self, update: GenerationUpdate) -> None:
        """Take one update in. Raises StreamViolationError when it may not come here."""
        if self.ended:
            raise StreamViolationError("an update follows the outcome")
        if isinstance(update, Accepted) == self.accepted:
            raise StreamViolationError("a stream begins with its acceptance, which comes once")
        match update:
            case Accepted():
                self.accepted = True
            case Chunk():
                self._receive_chunk(update)
            case VideoCompleted():
                self._receive_terminal(update)
            case Outcome():
                self._receive_outcome(update)
            case _:
                pass

    def _receive_chunk(self, chunk: Chunk) -> None:
        # IO-INV-101: a partial after its terminal is refused; the trailer is the last payload.
        if self._completed or self._trailer:
            raise StreamViolationError("a chunk follows the end of the video")
        if chunk.transport_chunk_index != self._payloads:
            raise StreamViolationError("payloads are numbered without gaps")
        self._payloads += 1
        self._bytes += len(chunk.data)
        if chunk.generation_chunk_index is None:
            self._trailer = True
            return
        if chunk.generation_chunk_index != self._media:
            raise StreamViolationError("generation chunks are numbered without gaps")
        self._media += 1
        self._frames += chunk.num_frames
        # WEIR-178: credits are what keeps a slow viewer from filling this process.
        if self._media > self._credits:
            raise StreamViolationError("more chunks were sent than there were credits for")

    def _receive_terminal(self, terminal: VideoCompleted) -> None:
        if self._completed:
            raise StreamViolationError("the video has ended already")
        counted = VideoCompleted(self._payloads, self._media, self._frames, self._bytes)
        if terminal != counted:
            raise StreamViolationError("the terminal counts something else than was sent")
        self._completed = True

    def _receive_outcome(self, outcome: Outcome) -> None:
        if outcome.failure is None and not self._completed:
            raise StreamViolationError("a generation completes with the terminal of its video")
        if outcome.transport_chunk_count != self._payloads:
            raise StreamViolationError("the outcome counts something else than was sent")
        self.ended = True
