"""The life of a commitment policy: its states, its limit, and what failure leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from services.edge.text import policy as policy_module
from services.edge.text.frontend import Span
from services.edge.text.policy import CommitmentPolicy, PolicyState
from services.edge.text.zh_en_special_v1 import PROFILE
from services.edge.text.zh_en_special_v1.held import Held


def test_unknown_profile_is_refused() -> None:
    """IO-INV-102: a profile is chosen by name, never guessed."""
    with pytest.raises(ValueError, match="unknown commitment profile: 'zh_en_special_v0'"):
        CommitmentPolicy("zh_en_special_v0")


@pytest.mark.parametrize("limit", [0, -1])
def test_non_positive_limit_is_refused(limit: int) -> None:
    """IO-INV-103: a limit that allows nothing to wait is no limit."""
    with pytest.raises(ValueError, match="must be positive"):
        CommitmentPolicy(PROFILE, max_pending_characters=limit)


@pytest.mark.parametrize("text", [None, b"12", 12, ["1"]])
def test_a_non_string_is_a_type_error_and_the_utterance_goes_on(text: Any) -> None:
    """IO-INV-102: the caller's mistake changes nothing."""
    policy = CommitmentPolicy(PROFILE)
    policy.feed("12")
    with pytest.raises(TypeError, match="text must be a string"):
        policy.feed(text)
    assert policy.state is PolicyState.OPEN
    assert policy.pending_text == "12"
    assert [span.source_text for span in policy.feed("中").spans] == ["12", "中"]


def test_finish_releases_the_rest_once() -> None:
    """IO-INV-103: the end of input closes the policy and flushes what was pending."""
    policy = CommitmentPolicy(PROFILE)
    policy.feed("好25 k")
    assert not policy.final
    update = policy.feed("", final=True)
    assert [(span.source_text, span.kind) for span in update.spans] == [
        ("25", "special"),
        (" ", "natural"),
        ("k", "lexical"),
    ]
    assert update.final
    assert policy.final
    assert policy.pending_text == update.pending_text == ""


def test_text_may_come_with_the_end_of_input() -> None:
    """IO-INV-103: the last packet is read before the input is closed."""
    update = CommitmentPolicy(PROFILE).feed("好。", final=True)
    assert update.spans == (Span("好。", "natural", True),)


@pytest.mark.parametrize("text", ["", "x"])
@pytest.mark.parametrize("final", [False, True])
def test_use_after_finish_is_refused(text: str, final: bool) -> None:
    """IO-INV-103: text after the end of input is rejected, and so is a second end."""
    policy = CommitmentPolicy(PROFILE)
    policy.feed("x", final=True)
    with pytest.raises(RuntimeError, match="finished"):
        policy.feed(text, final)


@pytest.mark.parametrize("final", [False, True])
def test_use_after_failure_is_refused(final: bool) -> None:
    """IO-INV-103: a failed utterance never goes on, not even to its end."""
    policy = CommitmentPolicy(PROFILE, max_pending_characters=1)
    with pytest.raises(ValueError, match="more than 1"):
        policy.feed("12")
    with pytest.raises(RuntimeError, match="failed"):
        policy.feed("", final)


LIMITS = [
    ("exactly the limit is allowed", ["123", "45"], True),
    ("one more is not", ["123", "456"], False),
    ("one packet above the limit", ["123456"], False),
    ("a long packet that resolves is fine", ["1234567890。好"], True),
    ("only what stays pending counts", ["好好好好好好好12345"], True),
    ("the pending text resolves by the packet", ["12345", "67890中"], True),
    ("code points are counted, not bytes", ["1\ufe0f\u20e3\ufe0f\u20e3"], True),
    ("a held run counts", ["。。。。。。"], False),
    ("white space after a number counts", ["1", "     "], False),
    ("the end of input leaves nothing to count", ["12345"], True),
]


@pytest.mark.parametrize(("packets", "allowed"), [row[1:] for row in LIMITS], ids=lambda _: "")
def test_the_limit_is_tested_on_what_stays_pending(packets: list[str], allowed: bool) -> None:
    """IO-INV-103: with a limit of 5, unresolved text above it fails the utterance."""
    policy = CommitmentPolicy(PROFILE, max_pending_characters=5)
    *before, last = packets
    for packet in before:
        policy.feed(packet)
    pending = policy.pending_text
    if allowed:
        policy.feed(last)
        assert len(policy.pending_text) <= 5
        return
    with pytest.raises(ValueError, match="more than 5"):
        policy.feed(last)
    assert policy.pending_text == pending


def test_a_long_last_packet_needs_no_room() -> None:
    """IO-INV-103: the limit is about what stays pending, and nothing does at the end."""
    policy = CommitmentPolicy(PROFILE, max_pending_characters=1)
    update = policy.feed("1234567890", final=True)
    assert [span.source_text for span in update.spans] == ["1234567890"]


def test_a_scanner_that_breaks_fails_the_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    """IO-INV-102: a failed scan publishes nothing and leaves what was pending."""

    def breaking(held: Held | None, text: str, final: bool) -> tuple[tuple[Span, ...], Held | None]:
        raise ArithmeticError

    policy = CommitmentPolicy(PROFILE)
    policy.feed("12")
    monkeypatch.setattr(policy, "_scan", breaking)
    with pytest.raises(ArithmeticError):
        policy.feed("中")
    assert policy.state is PolicyState.FAILED
    assert policy.pending_text == "12"


def test_an_empty_packet_changes_nothing() -> None:
    """IO-INV-102: there is no text in it to decide anything."""
    policy = CommitmentPolicy(PROFILE)
    policy.feed("12")
    update = policy.feed("")
    assert (update.spans, update.pending_text, update.final) == ((), "12", False)


def test_an_update_keeps_what_was_pending_then() -> None:
    """IO-INV-102: later packets do not reach back into what a call returned."""
    policy = CommitmentPolicy(PROFILE)
    first = policy.feed("12")
    second = policy.feed("34")
    policy.feed("中")
    assert (first.pending_text, second.pending_text) == ("12", "1234")


def test_policies_share_no_state() -> None:
    """IO-INV-102: one object serves one utterance."""
    one, other = CommitmentPolicy(PROFILE), CommitmentPolicy(PROFILE)
    one.feed("12")
    assert other.pending_text == ""


def test_the_default_limit() -> None:
    """IO-INV-103: 4,096 code points may be pending."""
    assert policy_module.DEFAULT_MAX_PENDING_CHARACTERS == 4096
    policy = CommitmentPolicy(PROFILE)
    policy.feed("1" * 4096)
    with pytest.raises(ValueError, match="4096"):
        policy.feed("1")
