"""The golden vectors of the video endpoint, played to the pure session."""

from __future__ import annotations

from typing import Any

import pytest

from services.edge.video.messages import CLIENT_MESSAGES, SERVER_MESSAGES
from tests.unit.edge.video.vectors import EVENTS, FOLDER, Player, Vector, server_frames, vectors

VECTORS = vectors()
CAUSED = {"server", "backend", "close"}
NAMED: list[Any] = [pytest.param(vector, id=vector["name"]) for vector in VECTORS]


@pytest.mark.parametrize("vector", NAMED)
def test_a_vector_is_reproduced_exactly(vector: Vector) -> None:
    """IO-INV-101, IO-INV-300, WEIR-154: every frame, control, abort and close."""
    player = Player(vector)
    for number, step in enumerate(vector["steps"]):
        expected = {key: value for key, value in step.items() if key in CAUSED}
        assert player.play(step) == expected, f"step {number}"


@pytest.mark.parametrize("vector", NAMED)
def test_a_vector_is_well_formed(vector: Vector) -> None:
    """IO-INV-300: known keys only, one event a step, named like its file."""
    assert (FOLDER / f"{vector['name']}.json").exists()
    assert vector["title"].endswith(".")
    assert set(vector) <= {"name", "title", "limits", "reachable", "strict", "steps"}
    for step in vector["steps"]:
        assert len(EVENTS.keys() & step.keys()) == 1
        assert set(step) <= EVENTS.keys() | CAUSED


def test_the_vectors_cover_the_protocol() -> None:
    """IO-INV-300: every message of either side and every kind of event stands in some vector."""
    steps = [step for vector in VECTORS for step in vector["steps"]]
    sent = {step["client"]["type"] for step in steps if "client" in step}
    assert sent >= {str(m.__struct_config__.tag) for m in CLIENT_MESSAGES}
    assert {f["type"] for f in server_frames()} == {
        str(m.__struct_config__.tag) for m in SERVER_MESSAGES
    }
    assert {key for step in steps for key in step if key in EVENTS} == set(EVENTS)
    assert len({v["name"] for v in VECTORS}) == len(VECTORS) >= 10
