"""Who a request is: form, stability, and what counts as an answer."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from contracts.identity import SegmentIdentity
from tests.contracts import strategies

IDENTITY = SegmentIdentity("session", "request", 0, 0)


@pytest.mark.parametrize("name", ["a", "A-Z_a.z-09", "x" * 128])
def test_a_plain_name_is_accepted(name: str) -> None:
    """WEIR-100: 1 to 128 characters that are safe in a log, a header and a path."""
    assert SegmentIdentity(name, name, 0, 0).request_id == name


@pytest.mark.parametrize(
    "name", ["", "x" * 129, "two words", "a/b", "a\n", "\n", "é", "a:b", "a\0"]
)
@pytest.mark.parametrize("field", ["session_id", "request_id"])
def test_any_other_name_is_refused(field: str, name: str) -> None:
    """WEIR-100: a name that a log or a header could misread."""
    changed: dict[str, Any] = {field: name}
    with pytest.raises(ValueError, match=field):
        replace(IDENTITY, **changed)


@pytest.mark.parametrize(
    "wrong", [{"utterance_index": -1}, {"segment_index": -1}, {"attempt": 0}, {"attempt": -1}]
)
def test_a_count_below_its_start_is_refused(wrong: dict[str, Any]) -> None:
    """WEIR-100: indices count from 0, attempts from 1."""
    with pytest.raises(ValueError, match="count"):
        replace(IDENTITY, **wrong)


@given(strategies.identities.filter(lambda identity: identity.attempt < 2**32 - 1))
def test_a_further_attempt_is_the_same_segment(identity: SegmentIdentity) -> None:
    """IO-INV-100: only the attempt counts up, so an answer to one is none to the other."""
    following = identity.next_attempt()
    assert replace(following, attempt=identity.attempt) == identity
    assert following.attempt == identity.attempt + 1
    assert identity.answers(identity)
    assert not following.answers(identity)


def test_an_identity_cannot_be_changed() -> None:
    """IO-INV-100: it is handed from stage to stage as it is."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        IDENTITY.attempt = 2  # type: ignore[misc]  # what the test is about
