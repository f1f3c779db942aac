"""Progress, waiting and the answers to pause and resume."""

from __future__ import annotations

from contracts.generation import (
    GenerationUpdate,
    Outcome,
    Paused,
    Progress,
    Resumed,
    Waiting,
    WaitReason,
)
from services.video.outbox import Outbox
from services.video.signs import Signs

END = Outcome(None, False, 0)


async def told(outbox: Outbox) -> list[GenerationUpdate]:
    """Return everything that was posted."""
    outbox.post(END)
    messages: list[GenerationUpdate] = []
    while (message := await outbox.get()) is not END:
        messages.append(message)
    return messages


async def test_progress_is_told_at_most_once_a_second() -> None:
    """WEIR-230: the first step at once, then none before the second is over."""
    outbox = Outbox(10)
    signs = Signs(outbox)
    for at, steps in ((10.0, 1), (10.5, 2), (10.99, 3), (11.0, 4), (11.5, 5), (99.0, 6)):
        signs.step(7, steps, at)
        outbox.post(Paused())  # so that nothing is replaced
    assert [m for m in await told(outbox) if m != Paused()] == [
        Progress(7, 1),
        Progress(7, 4),
        Progress(7, 6),
    ]


async def test_a_wait_is_told_once_for_each_reason() -> None:
    """WEIR-230: again after progress or a chunk, which end it."""
    outbox = Outbox(10)
    signs = Signs(outbox)
    for reason in (WaitReason.CREDIT, WaitReason.CREDIT, WaitReason.PLAYBACK):
        signs.stands_still(reason)
        outbox.post(Resumed())
    signs.chunk_left()
    signs.stands_still(WaitReason.PLAYBACK)
    signs.step(0, 1, 0.0)
    signs.stands_still(WaitReason.PLAYBACK)
    assert [m for m in await told(outbox) if m != Resumed()] == [
        Waiting(WaitReason.CREDIT),
        Waiting(WaitReason.PLAYBACK),
        Waiting(WaitReason.PLAYBACK),
        Progress(0, 1),
        Waiting(WaitReason.PLAYBACK),
    ]


async def test_every_pause_is_answered_when_the_generation_stands_still_for_it() -> None:
    """WEIR-230: not for another reason; each once."""
    outbox = Outbox(10)
    signs = Signs(outbox)
    signs.pause()
    signs.pause()
    signs.stands_still(WaitReason.CREDIT)
    signs.stands_still(WaitReason.PAUSE)
    signs.stands_still(WaitReason.PAUSE)
    assert await told(outbox) == [
        Waiting(WaitReason.CREDIT),
        Paused(),
        Paused(),
        Waiting(WaitReason.PAUSE),
    ]


async def test_a_resume_answers_what_it_takes_back() -> None:
    """WEIR-230: paused, then resumed; a resume of nothing is answered too."""
    outbox = Outbox(10)
    signs = Signs(outbox)
    signs.pause()
    signs.resume()
    signs.resume()
    assert await told(outbox) == [Paused(), Resumed(), Resumed()]
