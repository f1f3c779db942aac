"""One thread for many, in turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from services.video.turns import Turns
from tests.unit.video.support import PATIENCE_S


class Worker:
    """Takes as many turns as it is given, and notes each in a shared list."""

    def __init__(self, name: str, log: list[str], turns: int = 0) -> None:
        self.name = name
        self.turns = turns
        self.log = log
        self.hold: threading.Event | None = None
        self.entered = threading.Event()
        self.wakes: float | None = None
        self.broken = False

    def claim(self, now: float) -> Callable[[], None] | None:
        if self.wakes is not None and now >= self.wakes:
            self.wakes, self.turns = None, self.turns + 1
        if not self.turns:
            return None
        self.turns -= 1
        return self.work

    def wakes_at(self, now: float) -> float | None:
        return self.wakes

    def work(self) -> None:
        self.log.append(self.name)
        self.entered.set()
        if self.hold is not None:
            assert self.hold.wait(PATIENCE_S)
        if self.broken:
            raise RuntimeError("broken")


@pytest.fixture
def turns() -> Iterator[Turns]:
    made = Turns(time.monotonic, "turns of a test")
    yield made
    made.close()


def finished(turns: Turns, log: list[str], count: int) -> None:
    """Wait until so many turns were taken."""
    deadline = time.monotonic() + PATIENCE_S
    while len(log) < count:
        assert time.monotonic() < deadline, log


def test_members_take_turns_and_a_new_one_is_next(turns: Turns) -> None:
    """WEIR-231: whoever has just had one comes last."""
    log: list[str] = []
    hold = threading.Event()
    first = Worker("a", log, 3)
    first.hold = hold
    turns.join(first)
    assert first.entered.wait(PATIENCE_S)
    turns.join(Worker("b", log, 3))
    turns.join(Worker("c", log, 2))
    hold.set()
    finished(turns, log, 8)
    assert log == ["a", "c", "b", "a", "c", "b", "a", "b"]


def test_who_has_nothing_to_do_holds_nobody_up(turns: Turns) -> None:
    """WEIR-231: and is served as soon as it says so."""
    log: list[str] = []
    idle = Worker("idle", log)
    turns.join(idle)
    turns.join(Worker("busy", log, 2))
    finished(turns, log, 2)
    with turns.changed:
        idle.turns = 1
        turns.changed.notify_all()
    finished(turns, log, 3)
    assert log == ["busy", "busy", "idle"]


def test_time_alone_can_give_a_turn(turns: Turns) -> None:
    """WEIR-223: the thread wakes when a member says that it will have something to do."""
    log: list[str] = []
    later = Worker("later", log)
    later.wakes = time.monotonic() + 0.05
    due = later.wakes
    turns.join(later)
    finished(turns, log, 1)
    assert time.monotonic() >= due


def test_a_turn_that_breaks_ends_no_other(turns: Turns) -> None:
    """WEIR-236: the thread goes on."""
    log: list[str] = []
    broken = Worker("broken", log, 1)
    broken.broken = True
    turns.join(broken)
    finished(turns, log, 1)
    turns.join(Worker("well", log, 1))
    finished(turns, log, 2)
    turns.leave(broken)


def test_after_closing_nobody_gets_a_turn() -> None:
    """WEIR-231: the one under way ends by itself."""
    log: list[str] = []
    made = Turns(time.monotonic, "turns of a test")
    worker = Worker("a", log, 5)
    worker.hold = threading.Event()
    made.join(worker)
    assert worker.entered.wait(PATIENCE_S)
    made.close()
    worker.hold.set()
    made.join(Worker("b", log, 1))
    for thread in threading.enumerate():
        if thread.name == "turns of a test":
            thread.join(PATIENCE_S)
    assert log == ["a"]
