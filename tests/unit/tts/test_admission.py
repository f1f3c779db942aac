"""Slots, the queue and who is next."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from contracts.errors import Reason, WeirError
from services.tts.admission import Admission, AdmissionLimits, Ticket

SESSIONS = ["a", "b", "c"]


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _admission(slots: int = 1, queue: int = 10, clock: Clock | None = None) -> Admission:
    return Admission(AdmissionLimits(slots, queue, 100, 5000), clock or Clock())


def test_free_slots_are_given_at_once_and_then_places_in_the_queue() -> None:
    """WEIR-190: position 0 holds a slot; from 1 on a ticket waits."""
    admission = _admission(slots=2, queue=2)
    tickets = [admission.admit(session) for session in "abcd"]
    assert [ticket.position for ticket in tickets] == [0, 0, 1, 2]
    assert [ticket.holding for ticket in tickets] == [True, True, False, False]
    assert (admission.busy, admission.queued) == (2, 2)


def test_a_full_queue_refuses_with_a_delay() -> None:
    """WEIR-191: OVERLOADED with a retry delay, and nothing is taken."""
    admission = _admission(slots=1, queue=1)
    first, _ = admission.admit("a"), admission.admit("b")
    with pytest.raises(WeirError) as raised:
        admission.admit("c")
    assert raised.value.failure.reason is Reason.OVERLOADED
    assert raised.value.failure.retry_after_ms == 100
    assert (admission.busy, admission.queued) == (1, 1)
    first.release()
    assert admission.admit("c").position == 1


@pytest.mark.parametrize(
    ("service_s", "slots", "delay_ms"),
    [(0.01, 1, 100), (2.0, 1, 2000), (2.0, 4, 500), (60, 1, 5000)],
)
def test_the_delay_follows_the_recent_service_time_within_its_bounds(
    service_s: float, slots: int, delay_ms: int
) -> None:
    """WEIR-191: a caller is told to wait about as long as a place takes to become free."""
    clock = Clock()
    admission = _admission(slots=slots, queue=0, clock=clock)
    tickets = [admission.admit("a") for _ in range(slots)]
    clock.now += service_s
    for ticket in tickets:
        ticket.release()
    for _ in range(slots):
        admission.admit("a")
    with pytest.raises(WeirError) as raised:
        admission.admit("b")
    assert raised.value.failure.retry_after_ms == delay_ms


def test_a_freed_slot_goes_to_who_has_waited_longest() -> None:
    """WEIR-190: first come, first served among sessions with one request each."""
    admission = _admission()
    running, *waiting = [admission.admit(session) for session in ("a", "b", "c", "d")]
    for expected in range(3):
        running.release()
        assert [ticket.holding for ticket in waiting] == [index == expected for index in range(3)]
        running = waiting[expected]


def test_sessions_take_turns() -> None:
    """WEIR-192: a session with many requests does not hold up one that has one."""
    admission = _admission()
    running = admission.admit("x")
    order = ["greedy", "greedy", "greedy", "modest", "greedy", "late"]
    tickets = [admission.admit(session) for session in order]
    assert [ticket.position for ticket in tickets] == [1, 2, 3, 2, 5, 3]
    served: list[int] = []
    for _ in order:
        running.release()
        running = next(t for t in tickets if t.holding and tickets.index(t) not in served)
        served.append(tickets.index(running))
    assert [order[index] for index in served] == [
        "greedy",
        "modest",
        "late",
        "greedy",
        "greedy",
        "greedy",
    ]


def test_a_waiter_that_goes_frees_its_place_at_once() -> None:
    """WEIR-190: the place is free in the same moment, and no slot is spent on the one that left."""
    admission = _admission(slots=1, queue=1)
    running, waiting = admission.admit("a"), admission.admit("b")
    waiting.release()
    assert admission.queued == 0
    successor = admission.admit("c")
    running.release()
    assert successor.holding
    assert not waiting.holding


def test_a_release_more_than_once_frees_once() -> None:
    """WEIR-190: releasing is idempotent, so that every path may do it."""
    admission = _admission(slots=1, queue=2)
    running, second, third = (admission.admit(session) for session in "abc")
    running.release()
    running.release()
    assert (second.holding, third.holding) == (True, False)
    assert (admission.busy, admission.queued) == (1, 1)


async def test_a_cancelled_wait_leaves_the_slot_to_its_release() -> None:
    """WEIR-190: a task that is cancelled while it waits loses nothing for the others."""
    admission = _admission(slots=1, queue=2)
    running, second, third = (admission.admit(session) for session in "abc")
    waiting = asyncio.ensure_future(second.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    running.release()  # The slot is granted in the same step in which the wait is cancelled.
    with pytest.raises(asyncio.CancelledError):
        await waiting
    second.release()
    await third.wait()
    assert (admission.busy, admission.queued) == (1, 0)


async def test_draining_refuses_the_new_and_serves_the_accepted() -> None:
    """WEIR-068: SHUTTING_DOWN for who comes; who waits still gets its turn; then it is empty."""
    admission = _admission(slots=1, queue=2)
    running, waiting = admission.admit("a"), admission.admit("b")
    admission.drain()
    with pytest.raises(WeirError) as raised:
        admission.admit("c")
    assert raised.value.failure.reason is Reason.SHUTTING_DOWN
    empty = asyncio.ensure_future(admission.empty())
    running.release()
    await waiting.wait()
    await asyncio.sleep(0)
    assert not empty.done()
    waiting.release()
    await empty


class AdmissionLaws(RuleBasedStateMachine):
    """WEIR-190, WEIR-191, WEIR-192: no order of events loses a slot, exceeds a bound or starves."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.admission = _admission(slots=2, queue=3, clock=self.clock)
        self.tickets: list[Ticket] = []
        self.gone: list[Ticket] = []

    @rule(session=st.sampled_from(SESSIONS), seconds=st.floats(0, 10))
    def admit(self, session: str, seconds: float) -> None:
        """Somebody comes."""
        self.clock.now += seconds
        if len(self.tickets) < 5:
            self.tickets.append(self.admission.admit(session))
            return
        with pytest.raises(WeirError) as raised:
            self.admission.admit(session)
        assert raised.value.failure.reason is Reason.OVERLOADED
        assert 100 <= (raised.value.failure.retry_after_ms or 0) <= 5000

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """Somebody goes, from the queue or from a slot."""
        ticket = data.draw(st.sampled_from(self.tickets))
        self.tickets.remove(ticket)
        self.gone.append(ticket)
        ticket.release()

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def leave_again(self, data: st.DataObject) -> None:
        """Somebody goes who has gone already."""
        data.draw(st.sampled_from(self.gone)).release()

    @precondition(lambda self: any(not ticket.holding for ticket in self.tickets))
    @rule(data=st.data())
    def a_position_is_the_count_of_departures_to_wait_for(self, data: st.DataObject) -> None:
        """Who is told `n` starts after n slots were freed, when nobody else comes."""
        session = data.draw(st.sampled_from(SESSIONS))
        if len(self.tickets) == 5:
            return
        ticket = self.admission.admit(session)
        self.tickets.append(ticket)
        freed = 0
        while not ticket.holding:
            holder = next(t for t in self.tickets if t.holding)
            self.tickets.remove(holder)
            holder.release()
            freed += 1
        assert freed == ticket.position

    @invariant()
    def slots_and_places_add_up(self) -> None:
        """Every ticket holds or waits; nobody waits while a slot is free."""
        holding = sum(ticket.holding for ticket in self.tickets)
        assert self.admission.busy == holding == min(2, len(self.tickets))
        assert self.admission.queued == len(self.tickets) - holding


AdmissionLaws.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestAdmissionLaws = AdmissionLaws.TestCase
