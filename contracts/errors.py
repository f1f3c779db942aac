"""The one registry of what can go wrong.

Owns: the reasons, their gRPC code, WebSocket code, close code and retry rule, and the `Failure`
value every layer passes on. Does not own: conversion to and from the wire (`contracts.status`), the
effect on a session (its core). Enforces: WEIR-200 (one registry), WEIR-201 (no user text in a
message), WEIR-202 (an unknown reason falls back by its gRPC code).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType


class Reason(StrEnum):
    """Registered reasons. The WebSocket `code` is the reason in lower case."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    UNSUPPORTED_OPTION = "UNSUPPORTED_OPTION"
    SESSION_STATE = "SESSION_STATE"
    MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"
    PENDING_TEXT_LIMIT = "PENDING_TEXT_LIMIT"
    UTTERANCE_TOO_LONG = "UTTERANCE_TOO_LONG"
    EVENT_ID_CONFLICT = "EVENT_ID_CONFLICT"
    INTERACTION_FAILED = "INTERACTION_FAILED"
    UTTERANCE_FAILED = "UTTERANCE_FAILED"
    SEGMENT_FAILED = "SEGMENT_FAILED"
    OVERLOADED = "OVERLOADED"
    BACKEND_UNAVAILABLE = "BACKEND_UNAVAILABLE"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    IDLE_TIMEOUT = "IDLE_TIMEOUT"
    STALL_TIMEOUT = "STALL_TIMEOUT"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    INTERNAL = "INTERNAL"


class GrpcCode(IntEnum):
    """Canonical gRPC status codes, kept here so that `contracts` needs no grpc."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Retry(Enum):
    """Whether trying again makes sense."""

    NO = "no"
    YES = "yes"
    CALLER_DECIDES = "caller decides"


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """What one reason means. `grpc_codes[0]` is the code used when the caller names none."""

    grpc_codes: tuple[GrpcCode, ...]
    retry: Retry
    close_code: int | None = None
    """WebSocket close code when the error ends the connection, None when it never does."""
    http_status: int | None = None
    """HTTP status when the handshake is refused for it."""


_ANY_CODE = tuple(code for code in GrpcCode if code is not GrpcCode.OK)

REGISTRY: Mapping[Reason, ErrorRule] = MappingProxyType(
    {
        Reason.INVALID_MESSAGE: ErrorRule((GrpcCode.INVALID_ARGUMENT,), Retry.NO, 1008),
        Reason.UNSUPPORTED_OPTION: ErrorRule(
            (
                GrpcCode.FAILED_PRECONDITION,
                GrpcCode.INVALID_ARGUMENT,
                GrpcCode.UNIMPLEMENTED,
            ),
            Retry.NO,
            1008,
        ),
        Reason.SESSION_STATE: ErrorRule((GrpcCode.FAILED_PRECONDITION,), Retry.NO),
        Reason.MESSAGE_TOO_LARGE: ErrorRule((GrpcCode.INVALID_ARGUMENT,), Retry.NO, 1008),
        Reason.PENDING_TEXT_LIMIT: ErrorRule((GrpcCode.INVALID_ARGUMENT,), Retry.NO),
        Reason.UTTERANCE_TOO_LONG: ErrorRule((GrpcCode.INVALID_ARGUMENT,), Retry.NO),
        Reason.EVENT_ID_CONFLICT: ErrorRule((GrpcCode.ALREADY_EXISTS,), Retry.NO),
        Reason.INTERACTION_FAILED: ErrorRule((GrpcCode.INTERNAL, GrpcCode.UNIMPLEMENTED), Retry.NO),
        Reason.UTTERANCE_FAILED: ErrorRule((GrpcCode.FAILED_PRECONDITION,), Retry.NO),
        # The backend's own code is kept, so every code is allowed.
        Reason.SEGMENT_FAILED: ErrorRule((GrpcCode.INTERNAL, *_ANY_CODE), Retry.NO),
        Reason.OVERLOADED: ErrorRule((GrpcCode.RESOURCE_EXHAUSTED,), Retry.YES, 1013),
        Reason.BACKEND_UNAVAILABLE: ErrorRule((GrpcCode.UNAVAILABLE,), Retry.YES),
        Reason.DEADLINE_EXCEEDED: ErrorRule((GrpcCode.DEADLINE_EXCEEDED,), Retry.CALLER_DECIDES),
        Reason.UNAUTHENTICATED: ErrorRule((GrpcCode.UNAUTHENTICATED,), Retry.NO, None, 401),
        Reason.FORBIDDEN: ErrorRule((GrpcCode.PERMISSION_DENIED,), Retry.NO, None, 403),
        Reason.IDLE_TIMEOUT: ErrorRule((GrpcCode.DEADLINE_EXCEEDED,), Retry.NO, 1008),
        Reason.STALL_TIMEOUT: ErrorRule((GrpcCode.DEADLINE_EXCEEDED,), Retry.NO, 1008),
        Reason.SHUTTING_DOWN: ErrorRule((GrpcCode.UNAVAILABLE,), Retry.YES, 1012),
        Reason.INTERNAL: ErrorRule((GrpcCode.INTERNAL,), Retry.NO, 1011),
    }
)

INTERNAL_MESSAGE = "An internal error occurred; the log of the service has the details."

# WEIR-202: total over every code, so a newer peer's reason still means something here.
FALLBACK: Mapping[GrpcCode, Reason] = MappingProxyType(
    {
        GrpcCode.OK: Reason.INTERNAL,
        GrpcCode.CANCELLED: Reason.BACKEND_UNAVAILABLE,
        GrpcCode.UNKNOWN: Reason.INTERNAL,
        GrpcCode.INVALID_ARGUMENT: Reason.INVALID_MESSAGE,
        GrpcCode.DEADLINE_EXCEEDED: Reason.DEADLINE_EXCEEDED,
        GrpcCode.NOT_FOUND: Reason.UNSUPPORTED_OPTION,
        GrpcCode.ALREADY_EXISTS: Reason.EVENT_ID_CONFLICT,
        GrpcCode.PERMISSION_DENIED: Reason.FORBIDDEN,
        GrpcCode.RESOURCE_EXHAUSTED: Reason.OVERLOADED,
        GrpcCode.FAILED_PRECONDITION: Reason.SESSION_STATE,
        GrpcCode.ABORTED: Reason.BACKEND_UNAVAILABLE,
        GrpcCode.OUT_OF_RANGE: Reason.INVALID_MESSAGE,
        GrpcCode.UNIMPLEMENTED: Reason.UNSUPPORTED_OPTION,
        GrpcCode.INTERNAL: Reason.INTERNAL,
        GrpcCode.UNAVAILABLE: Reason.BACKEND_UNAVAILABLE,
        GrpcCode.DATA_LOSS: Reason.INTERNAL,
        GrpcCode.UNAUTHENTICATED: Reason.UNAUTHENTICATED,
    }
)


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One offending field: its dotted path and a fixed sentence about what it must be."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure as a value. Build it with `failure()`; it is what travels, logs and is compared.

    `message` is a fixed sentence with safe parameters (WEIR-201). `retry_after_ms` is set only
    where a retry makes sense.
    """

    reason: Reason
    code: GrpcCode
    message: str
    violations: tuple[FieldViolation, ...] = ()
    retry_after_ms: int | None = None

    @property
    def websocket_code(self) -> str:
        """The `code` of a WebSocket error message."""
        return self.reason.value.lower()

    @property
    def rule(self) -> ErrorRule:
        """The registered rule of the reason."""
        return REGISTRY[self.reason]

    def with_retry(self, retry_after_ms: int) -> Failure:
        """Return the same failure with a delay after which a retry makes sense."""
        return replace(self, retry_after_ms=retry_after_ms)


class WeirError(Exception):
    """Carries a `Failure` up a call stack to the place that makes a status or message of it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.reason.value}: {failure.message}")
        self.failure = failure


def failure(
    reason: Reason,
    message: str,
    *,
    code: GrpcCode | None = None,
    violations: tuple[FieldViolation, ...] = (),
    retry_after_ms: int | None = None,
) -> Failure:
    """Build a failure whose code the registry allows for its reason.

    Raises ValueError when `code` is not one of the reason's codes or a retry delay is given for a
    reason that is never retried: both are mistakes of the caller, not of a peer.
    """
    rule = REGISTRY[reason]
    chosen = rule.grpc_codes[0] if code is None else code
    if chosen not in rule.grpc_codes:
        raise ValueError(f"{reason.value} does not travel as {chosen.name}")
    if retry_after_ms is not None and rule.retry is Retry.NO:
        raise ValueError(f"{reason.value} is never retried")
    return Failure(reason, chosen, message, violations, retry_after_ms)


def reason_of(name: str, code: GrpcCode) -> Reason:
    """Return the reason called `name`, or the one its gRPC code stands for (WEIR-202)."""
    try:
        return Reason(name)
    except ValueError:
        return FALLBACK[code]
