"""Which frontend serves what was agreed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from services.edge.speech.frontends import open_frontend
from services.edge.speech.messages import SessionConfig
from services.edge.speech.negotiation import Agreement, negotiate
from services.edge.text.buffered import BufferedTextFrontend
from services.edge.text.commitment import CommitmentTextFrontend
from tests.unit.edge.speech.session_fixture import COMMITTED, POLICY, STANDARD


def agree(**fields: Any) -> Agreement:
    config = msgspec.convert({"type": "session.config", **fields}, SessionConfig)
    agreement = negotiate(config, STANDARD, POLICY)
    assert isinstance(agreement, Agreement)
    return agreement


@pytest.mark.parametrize(
    ("granularity", "count"), [(None, 1), ("none", 1), ("sentence", 2), ("clause", 3)]
)
def test_buffered_mode_splits_as_agreed(granularity: str | None, count: int) -> None:
    """IO-INV-102: the agreed granularity, and none unless one was asked for."""
    frontend = open_frontend(agree(split_granularity=granularity), 4)
    assert isinstance(frontend, BufferedTextFrontend)
    assert len(frontend.feed("One, two. Three.") + frontend.finish()) == count


def test_commitment_mode_runs_the_agreed_profile() -> None:
    """IO-INV-102: with the limit of pending code points it was given."""
    frontend = open_frontend(agree(**COMMITTED), 4)
    assert isinstance(frontend, CommitmentTextFrontend)
    assert frontend.feed("four") == []
    with pytest.raises(ValueError, match="4"):
        frontend.feed("5")


def test_no_profile_stands_in_for_another() -> None:
    """IO-INV-102: a profile that is not there is an error of ours, never another profile."""
    agreement = agree(**COMMITTED)
    assert agreement.commitment is not None
    unknown = replace(agreement, commitment=replace(agreement.commitment, profile="other"))
    with pytest.raises(ValueError, match="other"):
        open_frontend(unknown, 4)


@pytest.mark.parametrize("fields", [{}, COMMITTED], ids=["buffered", "commitment"])
def test_every_utterance_has_a_fresh_frontend(fields: dict[str, Any]) -> None:
    """IO-INV-103: nothing of one utterance is left for the next."""
    agreement = agree(**fields)
    first, second = open_frontend(agreement, 9), open_frontend(agreement, 9)
    first.feed("One")
    assert second.finish() == []
