"""Every failed call means something, whatever its trailers hold."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.status_pb2 import Status

from contracts.errors import FALLBACK, Failure, GrpcCode, Reason, failure
from contracts.status import status_of
from services.runtime.errors import failure_of_rpc_error

DETAILS = "grpc-status-details-bin"
BUSY = failure(Reason.OVERLOADED, "Every place is taken.", retry_after_ms=250)
SHUTTING_DOWN = failure(Reason.SHUTTING_DOWN, "Going.")


def rpc_error(code: grpc.StatusCode, *trailers: tuple[str, Any]) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailers), details="secret words"
    )


def details_of(failed: Failure) -> tuple[str, bytes]:
    return DETAILS, status_of(failed).SerializeToString()


def test_our_details_are_read() -> None:
    """WEIR-203: also when gRPC's own text of the status was changed on the way."""
    error = rpc_error(
        grpc.StatusCode.RESOURCE_EXHAUSTED, ("other", "x"), details_of(BUSY), ("last-bin", b"\xff")
    )
    assert failure_of_rpc_error(error) == BUSY


@pytest.mark.parametrize(
    "code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
)
def test_without_details_the_code_decides(code: grpc.StatusCode) -> None:
    """WEIR-202: the fallback is total over gRPC's codes, and no foreign text passes."""
    number = GrpcCode(code.value[0])
    received = failure_of_rpc_error(rpc_error(code))
    assert (received.reason, received.code) == (FALLBACK[number], number)
    assert "secret" not in received.message


@pytest.mark.parametrize(
    "trailer",
    [
        (DETAILS, b"\xff\xff garbage"),
        (DETAILS, b""),
        (DETAILS, "text"),
        (DETAILS, Status(code=14, message="secret words").SerializeToString()),
        ("x-other-bin", status_of(SHUTTING_DOWN).SerializeToString()),
    ],
    ids=["garbage", "empty", "text", "no ErrorInfo", "other key"],
)
def test_details_that_are_not_ours_are_passed_over(trailer: tuple[str, Any]) -> None:
    """WEIR-202: garbage in the trailers reads as none."""
    received = failure_of_rpc_error(rpc_error(grpc.StatusCode.UNAVAILABLE, trailer))
    assert received.reason is Reason.BACKEND_UNAVAILABLE
    assert "secret" not in received.message


def test_details_of_another_code_are_passed_over() -> None:
    """WEIR-202: a proxy that answers for the backend changes the code and may leave the details."""
    error = rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, details_of(SHUTTING_DOWN))
    assert failure_of_rpc_error(error).reason is Reason.DEADLINE_EXCEEDED


def test_an_error_without_any_trailers_is_read() -> None:
    """WEIR-202: gRPC gives none when the call never reached a server."""
    error = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE)
    assert failure_of_rpc_error(error).reason is Reason.BACKEND_UNAVAILABLE
