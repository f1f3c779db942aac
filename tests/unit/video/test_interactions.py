"""Who is answered what, and where every id ends."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from contracts.errors import Reason
from contracts.generation import (
    GenerationUpdate,
    Interaction,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
    Outcome,
)
from services.video.interactions import InteractionRules, Interactions
from services.video.outbox import Outbox
from services.video.timeline import Remainder, Timeline

END = Outcome(None, False, 0)


def made(outbox: Outbox | None = None, **changes: Any) -> Interactions[float]:
    """Return the interactions of a generation whose prompts are numbers."""
    rules: dict[str, Any] = {
        "prompt_updates": True,
        "default_transition_chunks": 3,
        "event_fields": frozenset({"mood"}),
        "max_waiting": 2,
        "retry_delay_ms": 100,
    }
    line = Timeline(0.0, lambda a, b, progress: a + (b - a) * progress)
    return Interactions(line, InteractionRules(**{**rules, **changes}), outbox or Outbox(100))


async def told(outbox: Outbox) -> list[GenerationUpdate]:
    """Return everything that was posted."""
    outbox.post(END)
    messages: list[GenerationUpdate] = []
    while (message := await outbox.get()) is not END:
        messages.append(message)
    return messages


SAME = [
    ({"transition_chunks": 3}, {"transition_chunks": 3}, True),
    ({"transition_chunks": 3}, {}, False),
    ({"transition_chunks": 3}, {"transition_chunks": 4}, False),
    ({}, {}, True),
    ({"event_fields": {"mood": 3}}, {"event_fields": {"mood": 3}}, True),
    ({"event_fields": {"mood": 1}}, {"event_fields": {"mood": True}}, False),
    ({"event_fields": {"mood": [1, {"a": 2}]}}, {"event_fields": {"mood": [1, {"a": 2}]}}, True),
    ({"event_fields": {"mood": "1"}}, {"event_fields": {"mood": 1}}, False),
]


@pytest.mark.parametrize(("first", "second", "same"), SAME)
async def test_payloads_are_compared_as_they_came(
    first: dict[str, Any], second: dict[str, Any], same: bool
) -> None:
    """WEIR-146: before defaults; every part counts."""
    outbox = Outbox(100)
    interactions = made(outbox)
    assert interactions.admit(Interaction("a", "p", **first))
    assert not interactions.admit(Interaction("a", "p", **second))
    answers = await told(outbox)
    assert answers[0] == InteractionQueued("a")
    if same:
        assert answers[1] == InteractionQueued("a")
    else:
        assert isinstance(answers[1], InteractionRefused)
        assert answers[1].failure.reason is Reason.EVENT_ID_CONFLICT


async def test_a_refused_id_is_not_recorded() -> None:
    """WEIR-229: refused for overload, then admitted when there is room."""
    outbox = Outbox(100)
    interactions = made(outbox)
    for name in "abc":
        interactions.admit(Interaction(name, "p"))
    interactions.encoded(Interaction("a", "p"), 1.0)
    assert interactions.admit(Interaction("c", "another prompt"))
    *_, refused, queued = await told(outbox)
    assert isinstance(refused, InteractionRefused)
    assert refused.failure.reason is Reason.OVERLOADED
    assert queued == InteractionQueued("c")


async def test_what_fails_after_the_end_is_unfinished_and_not_failed() -> None:
    """WEIR-145: an id ends once, whoever comes first."""
    outbox = Outbox(100)
    interactions = made(outbox)
    interactions.admit(Interaction("a", "p"))
    interactions.admit(Interaction("b", "p"))
    assert interactions.finish() == Remainder((), ("a", "b"))
    assert not interactions.wanted("a")
    interactions.failed("a")
    interactions.encoded(Interaction("b", "p"), 1.0)
    assert interactions.finish() == Remainder((), ())
    assert not any(isinstance(message, InteractionFailed) for message in await told(outbox))


async def test_lists_of_chunks_that_were_not_sent_come_back_at_the_end() -> None:
    """WEIR-145: completed there is unfinished, superseded there is superseded."""
    interactions = made(max_waiting=10)
    for name, chunks in (("a", 1), ("b", 1), ("c", 0), ("d", 5)):
        interaction = Interaction(name, "p", chunks)
        interactions.admit(interaction)
        interactions.encoded(interaction, 1.0)
        if name in "acd":
            interactions.next_boundary()
        if name == "a":
            interactions.sent()
    assert interactions.finish() == Remainder(("b",), ("c", "d"))


async def test_an_abandoned_generation_wants_nothing_encoded() -> None:
    """WEIR-235: the prompt thread skips what is left."""
    interactions = made()
    interactions.admit(Interaction("a", "p"))
    interactions.abandon()
    assert not interactions.wanted("a")
    assert not interactions.admit(Interaction("b", "p"))


async def test_an_id_ends_once_whatever_the_threads_do() -> None:
    """WEIR-145: boundaries, encodings, failures and the end, all at once, again and again."""
    for _ in range(30):
        outbox = Outbox(10_000)
        interactions = made(outbox, max_waiting=1000)
        asked = [Interaction(f"e{index}", "p", index % 3) for index in range(60)]
        for interaction in asked:
            assert interactions.admit(interaction)
        ends: Counter[str] = Counter()

        def encode(part: list[Interaction], live: Interactions[float] = interactions) -> None:
            for index, interaction in enumerate(part):
                if index % 5 == 4:
                    live.failed(interaction.event_id)
                else:
                    live.encoded(interaction, 1.0)

        def generate(live: Interactions[float] = interactions, found: Counter[str] = ends) -> None:
            for _ in range(20):
                boundary = live.next_boundary()
                live.sent()
                found.update(boundary.completed + boundary.superseded)

        threads = [
            threading.Thread(target=encode, args=(asked,)),
            threading.Thread(target=generate),
        ]
        for thread in threads:
            thread.start()
        threads[1].join()
        left = interactions.finish()
        threads[0].join()
        ends.update(left.superseded + left.unfinished)
        ends.update(
            message.event_id
            for message in await told(outbox)
            if isinstance(message, InteractionFailed)
        )
        assert ends == Counter(interaction.event_id for interaction in asked)
