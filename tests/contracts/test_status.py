"""A failure keeps its meaning over the wire, and nothing foreign passes as ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, Help, RetryInfo
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st
from weir.rpc.v1 import failure_pb2

from contracts.errors import (
    FALLBACK,
    REGISTRY,
    Failure,
    FieldViolation,
    GrpcCode,
    Reason,
    Retry,
    WeirError,
)
from contracts.status import (
    DOMAIN,
    MAX_RETRY_MS,
    failure_from_wire,
    failure_of_status,
    failure_to_wire,
    status_of,
)
from tests.processes import ROOT

PAIRS = [(reason, code) for reason, rule in REGISTRY.items() for code in set(rule.grpc_codes)]
TEXTS = st.text(max_size=80)
VIOLATIONS = st.lists(st.builds(FieldViolation, TEXTS, TEXTS), max_size=3).map(tuple)
ERROR_CODES = [code for code in GrpcCode if code is not GrpcCode.OK]

Converter = Callable[[Failure], Failure]


def through_status(failure: Failure) -> Failure:
    return failure_of_status(Status.FromString(status_of(failure).SerializeToString()))


def through_wire(failure: Failure) -> Failure:
    sent = failure_to_wire(failure).SerializeToString()
    return failure_from_wire(failure_pb2.Failure.FromString(sent))


def packed(detail: Message) -> any_pb2.Any:
    result = any_pb2.Any()
    result.Pack(detail)
    return result


def details(status: Status, kind: type[Message]) -> list[Message]:
    found = []
    for detail in status.details:
        message = kind()
        if detail.Unpack(message):
            found.append(message)
    return found


@st.composite
def failures(draw: st.DrawFn) -> Failure:
    reason, code = draw(st.sampled_from(PAIRS))
    carries_fields = code is GrpcCode.INVALID_ARGUMENT
    retried = REGISTRY[reason].retry is not Retry.NO
    return Failure(
        reason,
        code,
        draw(TEXTS),
        draw(VIOLATIONS) if carries_fields else (),
        draw(st.none() | st.integers(0, MAX_RETRY_MS)) if retried else None,
    )


@pytest.mark.parametrize("convert", [through_status, through_wire])
@pytest.mark.parametrize(("reason", "code"), PAIRS)
def test_every_reason_survives_with_each_of_its_codes(
    reason: Reason, code: GrpcCode, convert: Converter
) -> None:
    """WEIR-203: both wire forms carry every registered pair of reason and code."""
    failure = Failure(reason, code, "A fixed sentence.")
    assert convert(failure) == failure


@pytest.mark.parametrize("convert", [through_status, through_wire])
@given(failure=failures())
def test_a_failure_survives_both_forms_unchanged(convert: Converter, failure: Failure) -> None:
    """WEIR-203: message, field paths and retry delay survive bytes in both wire forms."""
    assert convert(failure) == failure


def test_the_conversions_load_no_transport() -> None:
    """WEIR-001: what the wire means is known without gRPC."""
    program = "import sys, contracts.status; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_a_status_has_the_standard_details_and_no_others() -> None:
    """WEIR-203: ErrorInfo always, BadRequest with INVALID_ARGUMENT, RetryInfo with a delay."""
    plain = status_of(Failure(Reason.INTERNAL, GrpcCode.INTERNAL, "m"))
    assert details(plain, ErrorInfo) == [ErrorInfo(reason="INTERNAL", domain="weir")]
    assert len(plain.details) == 1
    violation = FieldViolation("output.channels", "Is 1.")
    bad = status_of(
        Failure(Reason.INVALID_MESSAGE, GrpcCode.INVALID_ARGUMENT, "m", violations=(violation,))
    )
    sent = BadRequest.FieldViolation(field="output.channels", description="Is 1.")
    assert details(bad, BadRequest) == [BadRequest(field_violations=[sent])]
    busy = status_of(
        Failure(Reason.OVERLOADED, GrpcCode.RESOURCE_EXHAUSTED, "m", retry_after_ms=1500)
    )
    delay = duration_pb2.Duration(seconds=1, nanos=500_000_000)
    assert details(busy, RetryInfo) == [RetryInfo(retry_delay=delay)]


@pytest.mark.parametrize("convert", [through_status, through_wire])
def test_field_paths_travel_with_invalid_argument_only(convert: Converter) -> None:
    """WEIR-203: the schema gives field violations to INVALID_ARGUMENT and to no other code."""
    violations = (FieldViolation("voice", "Is declared."),)
    failure = Failure(Reason.UNSUPPORTED_OPTION, GrpcCode.INVALID_ARGUMENT, "m", violations)
    assert convert(failure).violations == violations
    other = replace(failure, code=GrpcCode.UNIMPLEMENTED)
    assert convert(other) == replace(other, violations=())


@pytest.mark.parametrize("code", ERROR_CODES)
def test_an_unknown_reason_falls_back_by_its_code(code: GrpcCode) -> None:
    """WEIR-202: a newer peer's reason means what its code means; its own message is kept."""
    newer = Status(code=code.value, message="A newer sentence.")
    newer.details.append(packed(ErrorInfo(reason="NEWER_REASON", domain=DOMAIN)))
    expected = Failure(FALLBACK[code], code, "A newer sentence.")
    assert failure_of_status(newer) == expected
    wire = failure_pb2.Failure(
        reason="NEWER_REASON", grpc_code=code.value, message="A newer sentence."
    )
    assert failure_from_wire(wire) == expected


@pytest.mark.parametrize("code", ERROR_CODES)
@pytest.mark.parametrize(
    "foreign",
    [
        [],
        [ErrorInfo(reason="OVERLOADED", domain="example.com")],
        [ErrorInfo(reason="OVERLOADED")],
        [Help(links=[Help.Link(description="secret words", url="x")])],
    ],
    ids=["no details", "foreign domain", "no domain", "foreign kind"],
)
def test_foreign_text_never_passes(code: GrpcCode, foreign: list[Message]) -> None:
    """WEIR-201: without a weir ErrorInfo the reason is the code's and the text a fixed sentence."""
    status = Status(code=code.value, message="secret words", details=map(packed, foreign))
    field = BadRequest.FieldViolation(field="secret words", description="secret words")
    status.details.append(packed(BadRequest(field_violations=[field])))
    received = failure_of_status(status)
    assert (received.reason, received.code) == (FALLBACK[code], code)
    assert "secret" not in repr(received)
    assert code.name in received.message


@pytest.mark.parametrize("number", [0, -1, 17, 99, 2**31 - 1])
def test_a_code_that_is_no_error_code_reads_as_unknown(number: int) -> None:
    """WEIR-202: the fallback is total, whatever number arrives as the code."""
    assert failure_of_status(Status(code=number)).code is GrpcCode.UNKNOWN
    assert failure_of_status(Status(code=number)).reason is Reason.INTERNAL


def test_unknown_and_broken_details_are_passed_over() -> None:
    """WEIR-202: what cannot be read in the details hides nothing of what can."""
    failure = Failure(Reason.SHUTTING_DOWN, GrpcCode.UNAVAILABLE, "m", retry_after_ms=5)
    status = status_of(failure)
    url = "type.googleapis.com/"
    broken = [
        any_pb2.Any(type_url=url + "google.rpc.ErrorInfo", value=b"\xff\xff\xff"),
        any_pb2.Any(type_url=url + "google.rpc.RetryInfo", value=b"\x0a\xff"),
        any_pb2.Any(type_url=url + "weir.future.v9.Detail", value=b"\x08\x01"),
        any_pb2.Any(type_url="", value=b"garbage"),
        any_pb2.Any(type_url="no slash at all"),
    ]
    skewed = Status(code=status.code, message="m", details=[*broken, *status.details])
    assert failure_of_status(skewed) == failure


@given(
    code=st.integers(-(2**31), 2**31 - 1),
    kinds=st.lists(
        st.sampled_from(["ErrorInfo", "BadRequest", "RetryInfo", "Nothing"]), max_size=4
    ),
    value=st.binary(max_size=30),
)
def test_any_status_gives_a_failure(code: int, kinds: list[str], value: bytes) -> None:
    """WEIR-202: garbage in every detail raises nothing and gives a registered reason."""
    broken = [any_pb2.Any(type_url=f"x/google.rpc.{kind}", value=value) for kind in kinds]
    received = failure_of_status(Status(code=code, details=broken))
    assert received.reason in REGISTRY
    assert received.code is not GrpcCode.OK


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (1, 999_999, 1001),
        (2, 5_000_000, 2005),
        (10**10, 0, MAX_RETRY_MS),
        (-3, 0, None),
    ],
)
def test_a_received_delay_is_rounded_up_and_bounded(
    seconds: int, nanos: int, expected: int | None
) -> None:
    """WEIR-203: never sooner than asked, never more than the in-band form can hold."""
    delay = duration_pb2.Duration(seconds=seconds, nanos=nanos)
    status = Status(code=GrpcCode.UNAVAILABLE, details=[packed(RetryInfo(retry_delay=delay))])
    assert failure_of_status(status).retry_after_ms == expected


def test_a_delay_for_a_reason_that_is_never_retried_is_dropped() -> None:
    """WEIR-200: the registry decides whether a retry makes sense, not the peer."""
    status = status_of(Failure(Reason.FORBIDDEN, GrpcCode.PERMISSION_DENIED, "m"))
    status.details.append(packed(RetryInfo(retry_delay=duration_pb2.Duration(seconds=1))))
    assert failure_of_status(status).retry_after_ms is None
    wire = failure_pb2.Failure(reason="FORBIDDEN", grpc_code=7, retry_delay_ms=1000)
    assert failure_from_wire(wire).retry_after_ms is None


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        (failure_pb2.Failure(grpc_code=13, message="secret words"), "reason"),
        (failure_pb2.Failure(reason="INTERNAL", message="secret words"), "grpc_code"),
    ],
)
def test_an_in_band_failure_without_reason_or_code_is_refused(
    wire: failure_pb2.Failure, field: str
) -> None:
    """WEIR-203: an empty reason or a code of OK is INVALID_MESSAGE and names the field."""
    with pytest.raises(WeirError) as caught:
        failure_from_wire(wire)
    assert caught.value.failure.reason is Reason.INVALID_MESSAGE
    assert [violation.field for violation in caught.value.failure.violations] == [field]
    assert "secret" not in str(caught.value)


def test_an_in_band_failure_with_unknown_fields_is_read() -> None:
    """WEIR-301: what a newer peer adds to a response is tolerated."""
    wire = failure_to_wire(Failure(Reason.INTERNAL, GrpcCode.INTERNAL, "m"))
    newer = failure_pb2.Failure.FromString(wire.SerializeToString() + b"\xa2\x06\x03new")
    assert failure_from_wire(newer) == Failure(Reason.INTERNAL, GrpcCode.INTERNAL, "m")
