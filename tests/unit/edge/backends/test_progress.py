"""Whether a segment may be tried again, and what the caller is given."""

from __future__ import annotations

import pytest

from contracts.errors import REGISTRY, GrpcCode, Reason, WeirError, failure
from contracts.identity import SegmentIdentity
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioEncoding,
    AudioFormat,
    IdentifiedUpdate,
    SpeechUpdate,
)
from contracts.speech import SegmentRequest
from services.edge.backends.progress import RETRIED, VIOLATED, SegmentProgress
from services.edge.backends.targets import Address

HERE = Address("10.0.0.1", 1)
FORMAT = AudioFormat(AudioEncoding.PCM, 24000)
REQUEST = SegmentRequest(SegmentIdentity("s", "r", 0, 0), "Hello.", FORMAT)


def progress(retries: int = 0) -> SegmentProgress:
    """Return a segment whose first attempt has begun."""
    made = SegmentProgress(REQUEST, deadline=30.0, retries_after_accept=retries)
    made.begin(HERE)
    return made


def take(subject: SegmentProgress, update: SpeechUpdate) -> bool:
    """Give an update of the present attempt."""
    return subject.admit(IdentifiedUpdate(subject.request.identity, update))


@pytest.mark.parametrize("reason", list(Reason))
def test_before_acceptance_only_refusals_and_lost_connections_are_tried_again(
    reason: Reason,
) -> None:
    """WEIR-134: for every reason of the registry."""
    assert progress(retries=1).may_retry(failure(reason, "x")) is (reason in RETRIED)
    assert {Reason.OVERLOADED, Reason.BACKEND_UNAVAILABLE, Reason.SHUTTING_DOWN} == RETRIED


@pytest.mark.parametrize("reason", list(Reason))
def test_after_acceptance_nothing_is_tried_again_without_the_adapters_word(reason: Reason) -> None:
    """IO-INV-102: for every reason of the registry."""
    subject = progress(retries=0)
    take(subject, Accepted(FORMAT))
    assert not subject.may_retry(failure(reason, "x"))


@pytest.mark.parametrize("reason", list(Reason))
def test_faults_of_the_request_are_never_tried_again(reason: Reason) -> None:
    """WEIR-134: what is wrong with a request is wrong at every replica."""
    subject = progress(retries=1)
    take(subject, Accepted(FORMAT))
    code = REGISTRY[reason].grpc_codes[0]
    if code in (GrpcCode.INVALID_ARGUMENT, GrpcCode.FAILED_PRECONDITION, GrpcCode.UNIMPLEMENTED):
        assert not subject.may_retry(failure(reason, "x"))


def test_an_accepted_segment_is_tried_again_as_often_as_allowed_while_nothing_was_given() -> None:
    """IO-INV-102: the count begins where it was first accepted."""
    subject = SegmentProgress(REQUEST, deadline=30.0, retries_after_accept=1)
    cause = failure(Reason.INTERNAL, "x")
    subject.begin(HERE)
    assert subject.may_retry(failure(Reason.OVERLOADED, "x"))
    subject.begin(HERE)
    assert take(subject, Accepted(FORMAT))
    assert subject.may_retry(cause)
    subject.begin(HERE)
    assert not take(subject, Accepted(FORMAT))
    assert not subject.may_retry(cause)


def test_once_a_byte_was_given_there_is_no_further_attempt() -> None:
    """IO-INV-102: nothing is heard twice."""
    subject = progress(retries=5)
    take(subject, Accepted(FORMAT))
    assert subject.may_retry(failure(Reason.INTERNAL, "x"))
    assert take(subject, AudioChunk(0, b"ab"))
    assert not subject.may_retry(failure(Reason.INTERNAL, "x"))


def test_a_broken_contract_is_never_tried_again_and_is_the_segments_failure() -> None:
    """WEIR-135: before acceptance as well."""
    subject = progress(retries=5)
    assert not subject.may_retry(VIOLATED)
    assert subject.final(VIOLATED).reason is Reason.SEGMENT_FAILED
    assert subject.final(VIOLATED).code is GrpcCode.INTERNAL


def test_another_format_than_the_announced_one_is_refused() -> None:
    """WEIR-120: accepted once, in one format."""
    subject = progress(retries=1)
    take(subject, Accepted(FORMAT))
    subject.begin(HERE)
    with pytest.raises(WeirError):
        take(subject, Accepted(AudioFormat(AudioEncoding.PCM, 16000)))


def test_attempts_keep_the_request_and_count_up() -> None:
    """IO-INV-100: everything but the attempt stays."""
    subject = SegmentProgress(REQUEST, deadline=30.0, retries_after_accept=0)
    first = subject.begin(HERE)
    second = subject.begin(Address("10.0.0.2", 1))
    assert first == REQUEST
    assert second.identity == REQUEST.identity.next_attempt()
    assert (second.text, second.output, second.voice) == (first.text, first.output, first.voice)
    assert subject.tried == {HERE, Address("10.0.0.2", 1)}


def test_the_failure_is_the_refusal_before_and_the_segments_after_acceptance() -> None:
    """WEIR-135: with the code of its cause and without a retry delay that nobody may use."""
    subject = progress()
    cause = failure(Reason.OVERLOADED, "x", retry_after_ms=100)
    assert subject.final(cause) is cause
    take(subject, Accepted(FORMAT))
    final = subject.final(cause)
    assert (final.reason, final.code) == (Reason.SEGMENT_FAILED, GrpcCode.RESOURCE_EXHAUSTED)
    assert final.retry_after_ms is None
