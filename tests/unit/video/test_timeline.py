"""How prompts turn into one another: every example of the protocol, with numbers as prompts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from services.video.timeline import Boundary, Remainder, Target, Timeline


def mixed(source: float, target: float, progress: float) -> float:
    """Return the number between two others."""
    return source + (target - source) * progress


def timeline(initial: float = 0.0) -> Timeline[float]:
    """Return a timeline of numbers."""
    return Timeline(initial, mixed)


Submission = tuple[int, str, float, int]
"""Before which chunk (from 1), event id, target value, transition chunks."""


NOTHING = Remainder((), ())


@dataclass(frozen=True, slots=True)
class Script:
    """What is submitted, and what then holds for every chunk."""

    name: str
    submissions: tuple[Submission, ...]
    chunks: tuple[Boundary[float], ...]
    left: Remainder = NOTHING


A, B, C = ("a",), ("b",), ("c",)

SCRIPTS = (
    Script("nothing is submitted", (), (Boundary(0.0), Boundary(0.0))),
    Script(
        "N = 0: the first affected chunk uses the target and tells all three",
        ((2, "a", 1.0, 0),),
        (
            Boundary(0.0),
            Boundary(1.0, 1.0, started=A, active=A, completed=A),
            Boundary(1.0),
        ),
    ),
    Script(
        "N = 1: the same, since the first affected chunk is the last",
        ((1, "a", 1.0, 1),),
        (Boundary(1.0, 1.0, started=A, active=A, completed=A), Boundary(1.0)),
    ),
    Script(
        "N = 3: progress 1/3, 2/3, 1",
        ((1, "a", 3.0, 3),),
        (
            Boundary(1.0, 1 / 3, started=A, active=A),
            Boundary(2.0, 2 / 3, active=A),
            Boundary(3.0, 1.0, active=A, completed=A),
            Boundary(3.0),
        ),
    ),
    Script(
        "an interruption starts from the state resolved at its boundary",
        ((1, "a", 1.0, 4), (3, "b", 2.0, 2)),
        (
            Boundary(0.25, 0.25, started=A, active=A),
            Boundary(0.5, 0.5, active=A),
            Boundary(1.375, 0.5, started=B, active=B, superseded=A),
            Boundary(2.0, 1.0, active=B, completed=B),
        ),
    ),
    Script(
        "a transition is replaced at the boundary where it would have ended",
        ((1, "a", 1.0, 2), (2, "b", 0.0, 2)),
        (
            Boundary(0.5, 0.5, started=A, active=A),
            Boundary(0.5, 0.5, started=B, active=B, superseded=A),
            Boundary(0.0, 1.0, active=B, completed=B),
        ),
    ),
    Script(
        "one slot: a newer pending target replaces an older one, which is named once",
        ((1, "a", 1.0, 0), (1, "b", 2.0, 0), (1, "c", 3.0, 0)),
        (
            Boundary(3.0, 1.0, started=C, active=C, completed=C, superseded=("a", "b")),
            Boundary(3.0),
        ),
    ),
    Script(
        "a hard update interrupts a transition",
        ((1, "a", 4.0, 4), (2, "b", 9.0, 0)),
        (
            Boundary(1.0, 0.25, started=A, active=A),
            Boundary(9.0, 1.0, started=B, active=B, completed=B, superseded=A),
            Boundary(9.0),
        ),
    ),
    Script(
        "what is running or pending at the end is unfinished",
        ((1, "a", 1.0, 4), (2, "b", 2.0, 2)),
        (Boundary(0.25, 0.25, started=A, active=A),),
        Remainder((), ("a", "b")),
    ),
    Script(
        "what was superseded and never named is told at the end",
        ((2, "a", 1.0, 4), (2, "b", 2.0, 2)),
        (Boundary(0.0),),
        Remainder(A, B),
    ),
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_example_holds(script: Script) -> None:
    """WEIR-143, WEIR-144, WEIR-145: values, progress and lists of every chunk."""
    line = timeline()
    seen = []
    for chunk in range(1, len(script.chunks) + 2):
        for before, event_id, value, transition_chunks in script.submissions:
            if before == chunk:
                line.submit(Target(event_id, value, transition_chunks))
        if chunk <= len(script.chunks):
            seen.append(line.next_boundary())
    assert tuple(seen) == script.chunks
    assert line.finish() == script.left


def test_the_last_chunk_uses_the_target_itself() -> None:
    """WEIR-143: not a blend that comes close to it."""
    target = 0.1 + 0.2
    line: Timeline[float] = Timeline(0.7, lambda source, _, progress: source * progress)
    line.submit(Target("a", target, 3))
    values = [line.next_boundary().value for _ in range(3)]
    assert values[2] is target
    assert values[0] != target


def test_finishing_leaves_nothing_to_finish() -> None:
    """WEIR-145: an id ends once."""
    line = timeline()
    line.submit(Target("a", 1.0, 3))
    assert line.finish() == Remainder((), ("a",))
    assert line.finish() == Remainder((), ())


@pytest.mark.parametrize(("event_id", "chunks"), [("", 0), ("a", -1)])
def test_a_target_that_is_none_is_refused(event_id: str, chunks: int) -> None:
    """WEIR-143: an id and a count from 0."""
    with pytest.raises(ValueError, match="event id"):
        Target(event_id, 1.0, chunks)
