"""The golden vectors of the speech endpoint, played to the pure session."""

from __future__ import annotations

from typing import Any

import pytest

from services.edge.speech.messages import CLIENT_MESSAGES, SERVER_MESSAGES
from tests.contracts.speech_vectors import EVENTS, FOLDER, Player, Vector, conversation, vectors

VECTORS = vectors()
CAUSED = {"server", "backend", "close"}
FROM_A_CLIENT = {"client", "client_frame", "speaks"}


def named(some: list[Vector]) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in some]


@pytest.mark.parametrize("vector", named(VECTORS))
def test_a_vector_is_reproduced_exactly(vector: Vector) -> None:
    """IO-INV-101, IO-INV-102, IO-INV-103, IO-INV-300: every frame, start, abort and close."""
    player = Player(vector)
    for number, step in enumerate(vector["steps"]):
        expected = {key: value for key, value in step.items() if key in CAUSED}
        assert player.play(step) == expected, f"step {number}"


@pytest.mark.parametrize("vector", named(VECTORS))
def test_a_vector_is_well_formed(vector: Vector) -> None:
    """IO-INV-300: known keys only, one event a step, named like its file."""
    assert (FOLDER / f"{vector['name']}.json").exists()
    assert vector["title"].endswith(".")
    known = {"name", "title", "over_sockets", "limits", "reachable", "steps", "conversation"}
    assert set(vector) <= known
    for step in vector["steps"]:
        assert len(EVENTS.keys() & step.keys()) == 1
        assert set(step) <= EVENTS.keys() | CAUSED


@pytest.mark.parametrize("vector", named(VECTORS))
def test_what_any_adapter_gives_follows_from_the_steps(vector: Vector) -> None:
    """IO-INV-300: the two accounts of one vector agree."""
    assert vector["conversation"] == conversation(vector["steps"])


@pytest.mark.parametrize("vector", named([v for v in VECTORS if v["over_sockets"]]))
def test_a_vector_over_sockets_needs_a_client_only(vector: Vector) -> None:
    """IO-INV-300: no failures, no clock, no shutdown; and nothing is sent into a race."""
    speaking = 0
    for step in vector["steps"]:
        assert EVENTS.keys() & step.keys() <= FROM_A_CLIENT
        if "speaks" not in step:
            # Beside speech in flight, an answer could come before or after the speech.
            assert not (speaking and ("server" in step or "close" in step))
        speaking -= "speaks" in step
        speaking += sum("start" in request for request in step.get("backend", []))


def test_the_vectors_cover_the_protocol() -> None:
    """IO-INV-300: every message of either side that can be sent stands in some vector."""
    steps = [step for vector in VECTORS for step in vector["steps"]]
    sent = {step["client"]["type"] for step in steps if "client" in step}
    got = {frame.get("type") for step in steps for frame in step.get("server", [])}
    assert {str(m.__struct_config__.tag) for m in CLIENT_MESSAGES} <= sent
    assert {str(m.__struct_config__.tag) for m in SERVER_MESSAGES} <= got
    assert len({v["name"] for v in VECTORS}) == len(VECTORS) >= 12
    assert sum(v["over_sockets"] for v in VECTORS) >= 8
