"""Laws of the timeline, over any order of submissions and boundaries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import Failure
from services.video.ledger import Admission, InteractionLedger
from services.video.timeline import Boundary, Remainder, Target, Timeline

NEXT = None
"""Stands for a boundary in a list of steps."""

Step = tuple[float, int] | None
"""Value and transition chunks of a submission, or a boundary."""

SUBMISSIONS = st.tuples(st.integers(-8, 8).map(float), st.integers(0, 5))
STEPS = st.lists(st.one_of(SUBMISSIONS, st.just(NEXT)), max_size=40)


@dataclass(slots=True)
class Walk:
    """What came of a list of steps. An id is the place of its submission: e0, e1, ..."""

    chunks: list[Boundary[float]] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)
    first_possible: dict[str, int] = field(default_factory=dict)
    asked: dict[str, tuple[float, int]] = field(default_factory=dict)
    left: Remainder | None = None


def walked(steps: list[Step]) -> Walk:
    """Carry out `steps` on a timeline of numbers that starts at 0."""
    walk = Walk()
    line: Timeline[float] = Timeline(0.0, lambda a, b, progress: a + (b - a) * progress)
    for step in steps:
        if step is NEXT:
            walk.chunks.append(line.next_boundary())
            continue
        event_id = f"e{len(walk.submitted)}"
        line.submit(Target(event_id, *step))
        walk.submitted.append(event_id)
        walk.asked[event_id] = step
        walk.first_possible[event_id] = len(walk.chunks)
    walk.left = line.finish()
    return walk


def where(walk: Walk, name: str) -> dict[str, list[int]]:
    """Return for each id the chunks whose list `name` holds it."""
    found: dict[str, list[int]] = {}
    for index, chunk in enumerate(walk.chunks):
        for event_id in getattr(chunk, name):
            found.setdefault(event_id, []).append(index)
    return found


@given(STEPS)
def test_every_id_ends_exactly_once(steps: list[Step]) -> None:
    """WEIR-145: completed, superseded in a chunk or at the end, or unfinished; one of them."""
    walk = walked(steps)
    assert walk.left is not None
    ends: Counter[str] = Counter(walk.left.superseded + walk.left.unfinished)
    for chunk in walk.chunks:
        ends.update(chunk.completed + chunk.superseded)
    assert ends == Counter(walk.submitted)


@given(STEPS)
def test_an_id_is_started_once_then_active_without_a_gap_then_over(steps: list[Step]) -> None:
    """WEIR-143, WEIR-145: started in its first active chunk, completed only in its last."""
    walk = walked(steps)
    started, active, completed = (where(walk, name) for name in ("started", "active", "completed"))
    assert started.keys() == active.keys()
    for event_id, places in active.items():
        first, last = places[0], places[-1]
        assert started[event_id] == [first]
        assert places == list(range(first, last + 1))
        assert completed.get(event_id, [last]) == [last]
        assert first >= walk.first_possible[event_id]
        assert event_id not in walk.chunks[last].superseded
    assert completed.keys() <= active.keys()
    assert all(len(chunk.active) <= 1 for chunk in walk.chunks)


@given(STEPS)
def test_progress_counts_up_in_equal_steps(steps: list[Step]) -> None:
    """WEIR-143: the k-th affected chunk has progress k/N; 1 is reached there and only there."""
    walk = walked(steps)
    for event_id, places in where(walk, "active").items():
        transition = max(1, walk.asked[event_id][1])
        seen = [walk.chunks[index].progress for index in places]
        assert seen == [k / transition for k in range(1, len(places) + 1)]
        done = event_id in walk.chunks[places[-1]].completed
        assert done is (len(places) == transition)
    assert all((chunk.progress is None) is (not chunk.active) for chunk in walk.chunks)


@given(STEPS)
def test_the_value_is_the_one_the_lists_tell_of(steps: list[Step]) -> None:
    """WEIR-143, WEIR-144: from the state of the chunk before, resolved first when it was turning.

    A second computation of the values, out of the lists and the progress alone.
    """
    walk = walked(steps)
    resting, source, running = 0.0, 0.0, None
    turned = 0
    for chunk in walk.chunks:
        if running is not None:
            target, transition = walk.asked[running]
            turned += 1
            resting = source + (target - source) * turned / transition
        if chunk.started:
            (running,) = chunk.started
            source, turned = resting, 1
        if running is None:
            assert chunk.value == resting
            continue
        target, transition = walk.asked[running]
        if chunk.completed:
            assert chunk.value == target
            resting, running = target, None
        else:
            assert abs(chunk.value - (source + (target - source) * turned / transition)) < 1e-9


@given(STEPS)
def test_targets_take_effect_in_the_order_of_their_submission(steps: list[Step]) -> None:
    """WEIR-144: a newer one never comes before an older one, and nothing older comes back."""
    walk = walked(steps)
    order = {event_id: place for place, event_id in enumerate(walk.submitted)}
    shown = [order[event_id] for chunk in walk.chunks for event_id in chunk.active]
    assert shown == sorted(shown)
    for name in ("started", "completed"):
        places = [order[event_id] for event_id in where(walk, name)]
        assert places == sorted(places)


@given(STEPS)
def test_the_newest_submission_always_takes_the_next_boundary(steps: list[Step]) -> None:
    """WEIR-144: one boundary later it is the one that is started."""
    walk = walked([*steps, (3.0, 2), NEXT])
    assert walk.chunks[-1].started == (walk.submitted[-1],)


OFFERS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 2), st.booleans()), max_size=60
)


@given(OFFERS, st.integers(1, 4))
def test_nothing_is_applied_twice_and_nothing_forgotten(
    offers: list[tuple[str, int, bool]], cap: int
) -> None:
    """WEIR-146, WEIR-147: against a dictionary that remembers everything."""
    ledger, model = InteractionLedger(cap), dict[str, int]()
    applied: Counter[str] = Counter()
    for event_id, payload, recorded in offers:
        answer = ledger.examine(event_id, payload)
        if event_id in model:
            if model[event_id] == payload:
                assert answer is Admission.REPEATED
            else:
                assert isinstance(answer, Failure)
        elif len(model) >= cap:
            assert isinstance(answer, Failure)
        else:
            assert answer is Admission.NEW
            if recorded:  # Otherwise it was refused for something else, such as overload.
                ledger.record(event_id, payload)
                model[event_id] = payload
                applied[event_id] += 1
        assert len(ledger) == len(model) <= cap
    assert all(count == 1 for count in applied.values())
