"""A failure in its three forms: our value, google.rpc.Status, and weir.rpc.v1.Failure in-band.

Owns: the conversions between the three, both ways; the only user of `google.rpc`. Does not own: the
reasons and their rules (`contracts.errors`), or how a status enters and leaves a call
(`services.runtime.errors`). Enforces: WEIR-201 (text that is not ours is never passed on), WEIR-202
(an unknown reason falls back by its gRPC code), WEIR-203 (a failure survives every conversion).
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from weir.rpc.v1 import failure_pb2

from contracts.errors import (
    REGISTRY,
    Failure,
    FieldViolation,
    GrpcCode,
    Reason,
    Retry,
    WeirError,
    failure,
    reason_of,
)

DOMAIN = "weir"
"""`ErrorInfo.domain` of every status we send; any other domain is somebody else's."""

MAX_RETRY_MS = 2**32 - 1
"""Greatest delay both wire forms can hold, in milliseconds."""

Detail = TypeVar("Detail", bound=Message)


def status_of(failure: Failure) -> Status:
    """Return the status that carries `failure`: ErrorInfo, then BadRequest and RetryInfo if any.

    BadRequest goes along with INVALID_ARGUMENT only, as with the in-band form: any other code does
    not speak about fields.
    """
    status = Status(code=failure.code.value, message=failure.message)
    _attach(status, ErrorInfo(reason=failure.reason.value, domain=DOMAIN))
    violations = _sent_violations(failure)
    if violations:
        _attach(
            status,
            BadRequest(
                field_violations=[
                    BadRequest.FieldViolation(field=v.field, description=v.description)
                    for v in violations
                ]
            ),
        )
    if failure.retry_after_ms is not None:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(_bounded_delay(failure.retry_after_ms))
        _attach(status, retry)
    return status


def failure_of_status(status: Status) -> Failure:
    """Return what a received status means here. Total: any status gives a failure.

    The code of the result is the peer's code (UNKNOWN for a number that is none, or for OK). A
    status without a weir ErrorInfo was made by someone else (a proxy, the transport, a library): it
    keeps its code, and a fixed sentence takes the place of its text.
    """
    code = _code_of(status.code)
    info = _find(status, ErrorInfo, domain=DOMAIN)
    # WEIR-202: a newer peer's reason still means what its code means.
    reason = reason_of("" if info is None else info.reason, code)
    # WEIR-201: foreign text may hold anything.
    message = _foreign_message(code) if info is None else status.message
    violations = () if info is None else _received_violations(status)
    retry = _find(status, RetryInfo)
    delay_ms = None if retry is None else _delay_ms(retry)
    return Failure(reason, code, message, violations, _meaningful_delay(reason, delay_ms))


def failure_to_wire(failure: Failure) -> failure_pb2.Failure:
    """Return the in-band form of `failure`."""
    wire = failure_pb2.Failure(
        reason=failure.reason.value,
        grpc_code=failure.code.value,
        message=failure.message,
        field_violations=[
            failure_pb2.FieldViolation(field=v.field, description=v.description)
            for v in _sent_violations(failure)
        ],
    )
    if failure.retry_after_ms is not None:
        wire.retry_delay_ms = _bounded_delay(failure.retry_after_ms)
    return wire


def failure_from_wire(wire: failure_pb2.Failure) -> Failure:
    """Return what a received in-band failure means here.

    Raises WeirError (INVALID_MESSAGE) for an empty reason or a code of OK: neither is a failure.
    """
    if not wire.reason:
        raise WeirError(_malformed("reason", "A failure names its reason."))
    if wire.grpc_code == GrpcCode.OK:
        raise WeirError(_malformed("grpc_code", "A failure has a code other than OK."))
    code = _code_of(wire.grpc_code)
    reason = reason_of(wire.reason, code)
    delay_ms = wire.retry_delay_ms if wire.HasField("retry_delay_ms") else None
    return Failure(
        reason,
        code,
        wire.message,
        tuple(FieldViolation(v.field, v.description) for v in wire.field_violations),
        _meaningful_delay(reason, delay_ms),
    )


def _attach(status: Status, detail: Message) -> None:
    packed = any_pb2.Any()
    packed.Pack(detail)
    status.details.append(packed)


def _find(status: Status, kind: type[Detail], *, domain: str | None = None) -> Detail | None:
    """Return the first readable detail of this kind (and domain); unknown and broken ones pass."""
    for packed in status.details:
        if not packed.Is(kind.DESCRIPTOR):
            continue
        found = kind()
        try:
            packed.Unpack(found)
        except DecodeError:
            continue
        if domain is None or getattr(found, "domain", None) == domain:
            return found
    return None


def _code_of(number: int) -> GrpcCode:
    try:
        code = GrpcCode(number)
    except ValueError:
        return GrpcCode.UNKNOWN
    return GrpcCode.UNKNOWN if code is GrpcCode.OK else code


def _foreign_message(code: GrpcCode) -> str:
    return f"The call ended with {code.name} and without a registered reason."


def _sent_violations(failure: Failure) -> tuple[FieldViolation, ...]:
    return failure.violations if failure.code is GrpcCode.INVALID_ARGUMENT else ()


def _received_violations(status: Status) -> tuple[FieldViolation, ...]:
    found = _find(status, BadRequest)
    if found is None:
        return ()
    return tuple(FieldViolation(v.field, v.description) for v in found.field_violations)


def _bounded_delay(delay_ms: int) -> int:
    return min(max(delay_ms, 0), MAX_RETRY_MS)


def _delay_ms(retry: RetryInfo) -> int | None:
    """Return the delay in whole milliseconds, rounded up; None for one that lies in the past."""
    delay = retry.retry_delay
    milliseconds = delay.seconds * 1000 - (-delay.nanos // 1_000_000)
    return None if milliseconds < 0 else min(milliseconds, MAX_RETRY_MS)


def _meaningful_delay(reason: Reason, delay_ms: int | None) -> int | None:
    return None if REGISTRY[reason].retry is Retry.NO else delay_ms


def _malformed(field: str, description: str) -> Failure:
    return failure(
        Reason.INVALID_MESSAGE,
        f"The failure is malformed: {field}.",
        violations=(FieldViolation(field, description),),
    )
