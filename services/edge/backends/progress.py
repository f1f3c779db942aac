"""What has become of one segment, over its attempts.

Owns: whether an update is new to the caller, and whether a failure may be tried again. Does not
own: when and where it is tried again (`tts`). Enforces: IO-INV-100 (every attempt is the same
segment), IO-INV-102 (a further attempt never brings a byte again), WEIR-120 (accepted once),
WEIR-134 (only what had no effect is tried again), WEIR-135 (a failure after acceptance is the
segment's, with the code of its cause).
"""

from __future__ import annotations

from dataclasses import replace

from contracts.errors import INTERNAL_MESSAGE, Failure, Reason, WeirError, failure
from contracts.modality import Accepted, AudioFormat, IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.backends.targets import Address

# WEIR-134: a refusal and a lost connection, in the words of the registry.
RETRIED = frozenset({Reason.OVERLOADED, Reason.BACKEND_UNAVAILABLE, Reason.SHUTTING_DOWN})
"""Reasons that are tried again while no replica has accepted the segment."""

REPLICA_FAULTS = RETRIED | {Reason.INTERNAL, Reason.SEGMENT_FAILED, Reason.DEADLINE_EXCEEDED}
"""Reasons that speak against the replica, not the request: another may do better."""

VIOLATED = failure(Reason.INTERNAL, INTERNAL_MESSAGE)
"""The backend broke the contract."""

SEGMENT_FAILED_MESSAGE = "The segment could not be synthesized."


class SegmentProgress:
    """The attempts at one segment, of which `request` is the present or next one."""

    __slots__ = (
        "_accepted",
        "_accepted_in",
        "_given",
        "_retries_after_accept",
        "attempts",
        "deadline",
        "request",
        "tried",
    )

    def __init__(
        self, request: SegmentRequest, *, deadline: float, retries_after_accept: int
    ) -> None:
        self.request = request
        self.deadline = deadline
        """Time after which nothing is begun any more."""
        self.attempts = 0
        self.tried: set[Address] = set()
        self._retries_after_accept = retries_after_accept
        self._accepted: AudioFormat | None = None
        self._accepted_in = 0
        self._given = False  # once more than `Accepted` was given there is no way back

    def begin(self, address: Address) -> SegmentRequest:
        """Note an attempt at `address` and return its request."""
        if self.attempts:
            # IO-INV-100: the same segment under the same request id; only the attempt counts up.
            self.request = replace(self.request, identity=self.request.identity.next_attempt())
        self.attempts += 1
        self.tried.add(address)
        return self.request

    def admit(self, identified: IdentifiedUpdate) -> bool:
        """Tell whether an update of the present attempt is new to the caller.

        Raises WeirError when a further attempt was accepted in another format than the first.
        """
        update = identified.update
        if not isinstance(update, Accepted):
            self._given = True
            return True
        if self._accepted is None:
            self._accepted, self._accepted_in = update.format, self.attempts
            return True
        # WEIR-120: the caller has announced the first format, so no other may follow it.
        if update.format != self._accepted:
            raise WeirError(VIOLATED)
        return False

    def may_retry(self, cause: Failure) -> bool:
        """Tell whether the segment may be tried again after its attempt failed for `cause`."""
        if cause is VIOLATED:
            return False
        # WEIR-134: before acceptance a request has had no effect.
        if self._accepted is None:
            return cause.reason in RETRIED
        return (
            not self._given  # IO-INV-102: nothing is heard a second time
            and self.attempts - self._accepted_in < self._retries_after_accept
            and cause.reason in REPLICA_FAULTS
        )

    def final(self, cause: Failure) -> Failure:
        """Return the failure of the segment whose last attempt failed for `cause`."""
        # WEIR-135: before acceptance the refusal itself is the answer.
        if self._accepted is None and cause is not VIOLATED:
            return cause
        return failure(Reason.SEGMENT_FAILED, SEGMENT_FAILED_MESSAGE, code=cause.code)
