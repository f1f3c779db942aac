"""What a generation remembers of its interactions."""

from __future__ import annotations

import pytest

from contracts.errors import Failure, Reason, failure
from services.video.ledger import CONFLICT, Admission, InteractionLedger

BROKEN = failure(Reason.INTERACTION_FAILED, "No.")


def test_an_id_is_new_once_and_then_repeated() -> None:
    """WEIR-146: the same payload again is acknowledged, not applied."""
    ledger = InteractionLedger()
    assert ledger.examine("a", ("p", 3)) is Admission.NEW
    ledger.record("a", ("p", 3))
    assert ledger.examine("a", ("p", 3)) is Admission.REPEATED
    assert len(ledger) == 1


def test_examining_records_nothing() -> None:
    """WEIR-146: what was refused for another reason may come again."""
    ledger = InteractionLedger()
    assert ledger.examine("a", 1) is Admission.NEW
    assert ledger.examine("a", 2) is Admission.NEW
    assert len(ledger) == 0


def test_another_payload_is_a_conflict_and_leaves_the_first_alone() -> None:
    """WEIR-146: `event_id_conflict`; the original is unaffected."""
    ledger = InteractionLedger()
    ledger.record("a", "one")
    assert ledger.examine("a", "two") is CONFLICT
    assert CONFLICT.reason is Reason.EVENT_ID_CONFLICT
    assert ledger.examine("a", "one") is Admission.REPEATED


def test_a_failure_is_remembered() -> None:
    """WEIR-146: a retry is told the same; others are not."""
    ledger = InteractionLedger()
    ledger.record("a", 1)
    ledger.record("b", 1)
    assert ledger.failure_of("a") is None
    ledger.fail("a", BROKEN)
    assert ledger.examine("a", 1) is Admission.REPEATED
    assert ledger.failure_of("a") is BROKEN
    assert ledger.failure_of("b") is None
    assert ledger.failure_of("nobody") is None


def test_ids_are_capped_and_none_is_forgotten() -> None:
    """WEIR-147: new ones are refused, old ones still known; conflicts are still conflicts."""
    ledger = InteractionLedger(max_event_ids=2)
    for event_id in ("a", "b"):
        ledger.record(event_id, event_id)
    refused = ledger.examine("c", "c")
    assert isinstance(refused, Failure)
    assert refused.reason is Reason.SESSION_STATE
    assert ledger.examine("a", "a") is Admission.REPEATED
    assert ledger.examine("b", "x") is CONFLICT


def test_the_bytes_of_ids_are_capped_and_none_is_forgotten() -> None:
    """WEIR-147: UTF-8 counts; what still fits is new, what is recorded is still known."""
    ledger = InteractionLedger(max_event_id_bytes=9)
    for event_id in ("😀", "😎"):
        assert ledger.examine(event_id, 1) is Admission.NEW
        ledger.record(event_id, 1)
    refused = ledger.examine("🙂", 1)
    assert isinstance(refused, Failure)
    assert refused.reason is Reason.SESSION_STATE
    assert "9 bytes" in refused.message
    assert ledger.examine("😀", 1) is Admission.REPEATED
    assert ledger.examine("😎", 2) is CONFLICT
    assert ledger.examine("a", 1) is Admission.NEW
    assert len(ledger) == 2


def test_an_id_is_recorded_once() -> None:
    """WEIR-146: recording it twice is a mistake of the caller."""
    ledger = InteractionLedger()
    ledger.record("a", 1)
    with pytest.raises(ValueError, match="once"):
        ledger.record("a", 1)


def test_a_ledger_holds_at_least_one_id() -> None:
    """WEIR-147: a cap of none would refuse everything."""
    with pytest.raises(ValueError, match="at least one"):
        InteractionLedger(0)
    with pytest.raises(ValueError, match="at least one"):
        InteractionLedger(max_event_id_bytes=0)
