"""How a failure leaves and enters a gRPC call.

Owns: aborting with a failure, reading the failure of a failed call, refusing requests with unknown
parts, and the scope that turns exceptions of a handler into statuses. Does not own: reasons and
their wire forms (`contracts.errors`, `contracts.status`). Enforces: WEIR-201 (no exception text
leaves the process), WEIR-204 (a cancellation is never converted), WEIR-301 (a request with unknown
parts is refused).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Never

import grpc
import grpc.aio
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from contracts.errors import (
    INTERNAL_MESSAGE,
    Failure,
    FieldViolation,
    Reason,
    WeirError,
    failure,
)
from contracts.status import failure_of_status, status_of
from services.runtime.logging import get_logger

_DETAILS_KEY = "grpc-status-details-bin"
_log = get_logger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


async def abort(context: Context, failed: Failure) -> Never:
    """End the call with the status of `failed`. Never returns: raises grpc.aio.AbortError."""
    await context.abort_with_status(rpc_status.to_status(status_of(failed)))


def failure_of_rpc_error(error: grpc.aio.AioRpcError) -> Failure:
    """Return what a failed call means. Total: an error without our details falls back by code."""
    code = error.code().value[0]
    # A proxy that replaced the status may leave the old details behind: the code decides.
    status = _details_of(error)
    if status is None or status.code != code:
        status = Status(code=code)
    return failure_of_status(status)


def refuse_unknown_fields(message: Message) -> None:
    """Refuse a request that holds anything this build does not know, at any depth.

    Raises WeirError (INVALID_MESSAGE) with the path of each message that has unknown fields and of
    each enum with an unknown number. Costs one to two microseconds for each nested message.
    """
    # WEIR-301: an option that this build does not know must not be dropped in silence.
    violations = tuple(_unknown_parts(message, ""))
    if violations:
        raise WeirError(
            failure(
                Reason.INVALID_MESSAGE,
                "The request has fields or values that this version of the service does not know.",
                violations=violations,
            )
        )


@asynccontextmanager
async def error_scope(method: str, context: Context) -> AsyncIterator[None]:
    """Turn what a handler raises into a status; a call scope (`interceptor.CallScope`).

    WeirError becomes its failure; every other Exception becomes INTERNAL with a fixed message and
    goes to the log. Cancellation and aborts that have already happened pass.
    """
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except WeirError as error:
        await abort(context, error.failure)
    except Exception as error:
        # CancelledError is a BaseException, so it is not caught here (WEIR-204).
        _log.error("call_failed", method=method, error=error)
        await abort(context, failure(Reason.INTERNAL, INTERNAL_MESSAGE))


def _details_of(error: grpc.aio.AioRpcError) -> Status | None:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                return Status.FromString(value)
            except DecodeError:
                return None
    return None


def _unknown_parts(message: Message, path: str) -> Iterator[FieldViolation]:
    unknown = UnknownFieldSet(message)
    if count := len(unknown):
        fields = (unknown[index] for index in range(count))
        numbers = ", ".join(map(str, sorted({field.field_number for field in fields})))
        yield FieldViolation(path or ".", f"Has no fields with the numbers {numbers}.")
    for field, value in message.ListFields():
        place = f"{path}.{field.name}" if path else field.name
        if field.enum_type is None and field.message_type is None:
            continue
        for where, held, item in _held(field, value, place):
            if held.enum_type is not None:
                yield from _unknown_number(held.enum_type, item, where)
            elif held.message_type is not None:
                yield from _unknown_parts(item, where)


def _held(
    field: FieldDescriptor, value: Any, path: str
) -> Iterator[tuple[str, FieldDescriptor, Any]]:
    """Yield path, descriptor and value of everything that a field holds: one, a list or a map."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        held = field.message_type.fields_by_name["value"]
        # A map's key may be user text, so the path does not name it (WEIR-201).
        yield from ((f"{path}[]", held, item) for item in value.values())
    elif field.is_repeated:
        yield from ((f"{path}[{index}]", field, item) for index, item in enumerate(value))
    else:
        yield path, field, value


def _unknown_number(enum: EnumDescriptor, number: int, path: str) -> Iterator[FieldViolation]:
    if number not in enum.values_by_number:
        yield FieldViolation(path, f"Is one of the values of {enum.name}.")
