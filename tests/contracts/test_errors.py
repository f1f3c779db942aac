"""The registry is total, consistent, and the only place where an error gets its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import (
    FALLBACK,
    REGISTRY,
    Failure,
    GrpcCode,
    Reason,
    Retry,
    WeirError,
    failure,
    reason_of,
)

DOCUMENT = Path(__file__).parents[2] / "contracts" / "invariants" / "errors.md"


def test_every_reason_has_a_rule_and_every_rule_a_reason() -> None:
    """WEIR-200: the registry is total."""
    assert set(REGISTRY) == set(Reason)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_rule_names_codes_that_say_that_something_failed(reason: Reason) -> None:
    """WEIR-200: at least one code, never OK; close codes and HTTP statuses are those we use."""
    rule = REGISTRY[reason]
    assert rule.grpc_codes
    assert GrpcCode.OK not in rule.grpc_codes
    assert rule.close_code in (None, 1008, 1011, 1012, 1013)
    assert rule.http_status in (None, 401, 403)
    assert failure(reason, "x").code is rule.grpc_codes[0]


@pytest.mark.parametrize("reason", list(Reason))
def test_the_websocket_code_is_the_reason_in_lower_case(reason: Reason) -> None:
    """WEIR-200: one name on both sides of the edge."""
    assert failure(reason, "x").websocket_code == reason.value.lower()
    assert reason.value == reason.name


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("code", list(GrpcCode))
def test_a_failure_travels_only_by_the_codes_of_its_reason(reason: Reason, code: GrpcCode) -> None:
    """WEIR-200: any other pair is a mistake of ours and is refused where it is made."""
    if code in REGISTRY[reason].grpc_codes:
        assert failure(reason, "x", code=code).code is code
    else:
        with pytest.raises(ValueError, match="does not travel"):
            failure(reason, "x", code=code)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_retry_delay_goes_only_with_reasons_that_may_be_retried(reason: Reason) -> None:
    """WEIR-200: the retry rule stands in the registry."""
    if REGISTRY[reason].retry is Retry.NO:
        with pytest.raises(ValueError, match="never retried"):
            failure(reason, "x", retry_after_ms=1)
    else:
        assert failure(reason, "x", retry_after_ms=1).retry_after_ms == 1
        assert failure(reason, "x").with_retry(2).retry_after_ms == 2


@pytest.mark.parametrize("code", list(GrpcCode))
def test_an_unknown_reason_means_what_its_code_means(code: GrpcCode) -> None:
    """WEIR-202: total over every code."""
    assert reason_of("REASON_OF_A_NEWER_PEER", code) is FALLBACK[code]
    assert reason_of("", code) is FALLBACK[code]


@given(st.sampled_from(Reason), st.sampled_from(GrpcCode))
def test_a_known_reason_is_kept_whatever_its_code(reason: Reason, code: GrpcCode) -> None:
    """WEIR-202: the fallback is only for names that we do not know."""
    assert reason_of(reason.value, code) is reason


def test_codes_have_the_numbers_of_grpc() -> None:
    """WEIR-200: `contracts` imports no grpc, so its list of codes is compared here."""
    import grpc

    assert {code.name: code.value for code in GrpcCode} == {
        code.name: code.value[0] for code in grpc.StatusCode
    }


def test_an_error_carries_its_failure_and_says_nothing_more() -> None:
    """WEIR-201: what it prints is the reason and the fixed sentence."""
    made = Failure(Reason.INTERNAL, GrpcCode.INTERNAL, "A sentence.")
    error = WeirError(made)
    assert error.failure is made
    assert str(error) == "INTERNAL: A sentence."


@pytest.mark.parametrize("reason", list(Reason))
def test_the_document_explains_every_reason(reason: Reason) -> None:
    """WEIR-200: what errors mean is a document of its own, and it is complete."""
    lines = [line.strip("|").split("|") for line in DOCUMENT.read_text().splitlines()]
    rows = [[cell.strip() for cell in cells] for cells in lines if len(cells) == 5]
    (cells,) = [row for row in rows if row[0] == f"`{reason.value}`"]
    rule = REGISTRY[reason]
    if reason is not Reason.SEGMENT_FAILED:  # any code, said in words
        assert {code.name for code in rule.grpc_codes} == set(cells[1].replace("`", "").split(", "))
    assert cells[2] == rule.retry.value
    assert cells[3] == str(rule.close_code or rule.http_status or "-")


@pytest.mark.parametrize("code", list(GrpcCode))
def test_the_document_explains_every_code(code: GrpcCode) -> None:
    """WEIR-202: the fallback table of the document is that of the registry."""
    assert f"| `{code.name}` | `{FALLBACK[code].value}` |" in DOCUMENT.read_text().splitlines()
