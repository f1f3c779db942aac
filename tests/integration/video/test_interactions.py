"""Interactions over a real connection: what is answered, and what the pixels then show."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from weir.video.v1 import video_pb2

from contracts.errors import GrpcCode, Reason
from contracts.status import failure_from_wire
from tests.integration.video.serving import Viewer, failure_in, serving, viewing
from tests.unit.video.support import (
    SteppedAdapter,
    close_to,
    colour_in,
    config,
    control,
    credit,
    frames_in,
    interaction,
    pattern,
)

BLACK, RED, BLUE = "#000000", "#f00000", "#0000f0"


@asynccontextmanager
async def steered(prompt: str = BLACK, **settings: Any) -> AsyncIterator[Viewer]:
    """View an endless video that waits for a credit before its first chunk but one.

    `!` in a prompt makes it fail.
    """
    adapter = pattern(fail_marker="!", **settings)
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(prompt, credits=1, endless=True)) as viewer,
    ):
        await viewer.until("waiting")
        yield viewer


async def chunk(viewer: Viewer) -> video_pb2.GenerationChunk:
    """Have one more chunk made; return it when nothing is in progress any more."""
    await viewer.send(credit())
    made: video_pb2.GenerationChunk = await viewer.until("chunk")
    await viewer.until("waiting")
    return made


def shown(viewer: Viewer) -> list[tuple[float, float, float]]:
    """Return the colour of every chunk but the first; all frames of a chunk must agree."""
    frames = frames_in(viewer.payloads)
    colours, at = [], 0
    for media in viewer.media:
        of_chunk = [colour_in(frame) for frame in frames[at : at + media.video.num_frames]]
        assert all(close_to(colour, of_chunk[0]) for colour in of_chunk)
        colours.append(of_chunk[0])
        at += media.video.num_frames
    assert at == len(frames)
    return colours[1:]


def lists(made: video_pb2.GenerationChunk) -> tuple[Sequence[str], ...]:
    """Return started, active, completed and superseded of a chunk."""
    return (
        list(made.started_event_ids),
        list(made.active_event_ids),
        list(made.completed_event_ids),
        list(made.superseded_event_ids),
    )


BLENDS = [
    (0, [1.0, 1.0]),
    (1, [1.0, 1.0]),
    (3, [1 / 3, 2 / 3, 1.0, 1.0]),
    (None, [1 / 3, 2 / 3, 1.0, 1.0]),
]


@pytest.mark.parametrize(("transition_chunks", "progress"), BLENDS)
async def test_the_blend_is_in_the_pixels(
    transition_chunks: int | None, progress: list[float]
) -> None:
    """WEIR-143: k/N in the k-th affected chunk; absent means the model's 3."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, transition_chunks))
        assert (await viewer.until("interaction_queued")).event_id == "a"
        await viewer.barrier()
        made = [await chunk(viewer) for _ in progress]
    length = progress.index(1.0) + 1
    assert [m.prompt_progress for m in made[:length]] == pytest.approx(progress[:length])
    assert not made[length].HasField("prompt_progress")
    assert lists(made[0])[0] == ["a"]
    assert [list(m.active_event_ids) for m in made] == [["a"]] * length + [[]]
    assert [list(m.completed_event_ids) for m in made].index(["a"]) == length - 1
    for colour, share in zip(shown(viewer), progress, strict=True):
        assert close_to(colour, (0xF0 * share, 0, 0))


async def test_an_interruption_starts_from_what_is_shown() -> None:
    """WEIR-144: a over 4 chunks, b over 2 from the third on; the blend goes on from 3/4."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 4))
        await viewer.barrier()
        made = [await chunk(viewer), await chunk(viewer)]
        await viewer.send(interaction("b", BLUE, 2))
        await viewer.barrier()
        made += [await chunk(viewer), await chunk(viewer)]
    assert [lists(m) for m in made] == [
        (["a"], ["a"], [], []),
        ([], ["a"], [], []),
        (["b"], ["b"], [], ["a"]),
        ([], ["b"], ["b"], []),
    ]
    wanted = [(60, 0, 0), (120, 0, 0), (90, 0, 120), (0, 0, 240)]
    assert all(map(close_to, shown(viewer), wanted))


async def test_a_transition_replaced_in_its_last_chunk_is_superseded() -> None:
    """WEIR-144, WEIR-145: values 1/2, 1/2, 0; a never completes."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 2))
        await viewer.barrier()
        made = [await chunk(viewer)]
        await viewer.send(interaction("b", BLACK, 2))
        await viewer.barrier()
        made += [await chunk(viewer), await chunk(viewer)]
    assert [lists(m) for m in made] == [
        (["a"], ["a"], [], []),
        (["b"], ["b"], [], ["a"]),
        ([], ["b"], ["b"], []),
    ]
    wanted = [(120, 0, 0), (120, 0, 0), (0, 0, 0)]
    assert all(map(close_to, shown(viewer), wanted))


async def test_a_pending_target_is_replaced_unseen() -> None:
    """WEIR-144: the older one is named as superseded in the next chunk and nowhere else."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 0), interaction("b", BLUE, 0))
        await viewer.barrier()
        made = await chunk(viewer)
    assert lists(made) == (["b"], ["b"], ["b"], ["a"])
    assert close_to(shown(viewer)[0], (0, 0, 240))


async def test_a_prompt_that_cannot_be_encoded_leaves_an_older_pending_one_alive() -> None:
    """WEIR-229: queued, then failed, correlated; the generation and the other target go on."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 0), interaction("b", "bad! text", 0))
        failed = await viewer.until("interaction_failed")
        made = await chunk(viewer)
    assert viewer.kinds.count("interaction_queued") == 2
    assert failed.event_id == "b"
    cause = failure_from_wire(failed.failure)
    assert (cause.reason, cause.code) == (Reason.INTERACTION_FAILED, GrpcCode.INTERNAL)
    assert "bad" not in cause.message
    assert lists(made) == (["a"], ["a"], ["a"], [])


async def test_a_retry_is_acknowledged_and_applied_once() -> None:
    """WEIR-146: 3 as the model's default is not the same as 3 given; the original is unharmed."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 0), interaction("a", RED, 0))
        await viewer.barrier()
        made = [await chunk(viewer)]
        await viewer.send(interaction("a", RED, 0))
        await viewer.until("interaction_queued")
        await viewer.send(interaction("a", RED, 1))
        refused = await viewer.until("interaction_refused")
        await viewer.send(interaction("b", BLUE, 3), interaction("b", BLUE))
        conflict = await viewer.until("interaction_refused")
        await viewer.barrier()
        made.append(await chunk(viewer))
    assert lists(made[0]) == (["a"], ["a"], ["a"], [])
    assert failure_from_wire(refused.failure).reason is Reason.EVENT_ID_CONFLICT
    assert (refused.event_id, conflict.event_id) == ("a", "b")
    assert lists(made[1]) == (["b"], ["b"], [], [])
    assert viewer.kinds.count("interaction_queued") == 3 + 1 + 2


async def test_a_retry_of_a_failed_id_is_told_the_same_again() -> None:
    """WEIR-146: `queued` and the same failure; it is not tried again."""
    async with steered() as viewer:
        await viewer.send(interaction("a", "!", 0))
        first = await viewer.until("interaction_failed")
        await viewer.send(interaction("a", "!", 0))
        again = await viewer.until("interaction_failed")
    assert first == again
    assert viewer.kinds.count("interaction_queued") == 2


async def test_a_model_without_prompt_updates_says_so_after_queued() -> None:
    """WEIR-229: UNIMPLEMENTED, and again for the retry."""
    async with steered(prompt_updates=False) as viewer:
        await viewer.send(interaction("a", RED), interaction("a", RED))
        failed = await viewer.until("interaction_failed")
        await viewer.until("interaction_failed")
        made = await chunk(viewer)
    cause = failure_from_wire(failed.failure)
    assert (cause.reason, cause.code) == (Reason.INTERACTION_FAILED, GrpcCode.UNIMPLEMENTED)
    assert media_only(viewer.kinds)[1:6] == [
        "chunk",
        "interaction_queued",
        "interaction_failed",
        "interaction_queued",
        "interaction_failed",
    ]
    assert lists(made) == ([], [], [], [])


def media_only(kinds: list[str | None]) -> list[str | None]:
    """Return the kinds without signs of life."""
    return [kind for kind in kinds if kind not in ("progress", "waiting")]


async def test_event_fields_reach_a_model_that_declares_them_and_fail_otherwise() -> None:
    """WEIR-229: `brightness` is declared, `mood` is not; a null field is an absent one."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 0, brightness=0.5))
        await viewer.send(interaction("b", BLUE, 0, mood="dark"))
        failed = await viewer.until("interaction_failed")
        await viewer.send(interaction("c", RED, 0, brightness=7))
        wrong = await viewer.until("interaction_failed")
        await viewer.send(interaction("a", RED, 0, brightness=0.5, mood=None))
        await viewer.until("interaction_queued")
        await viewer.barrier()
        made = await chunk(viewer)
    assert (failed.event_id, wrong.event_id) == ("b", "c")
    assert failure_from_wire(failed.failure).code is GrpcCode.UNIMPLEMENTED
    assert failure_from_wire(wrong.failure).code is GrpcCode.INTERNAL
    assert lists(made) == (["a"], ["a"], ["a"], [])
    assert close_to(shown(viewer)[0], (120, 0, 0))


def _unknown_field(event_id: str) -> video_pb2.StreamGenerateRequest:
    message = interaction(event_id, RED)
    message.interaction.MergeFromString(b"\xa8\x1f\x07")
    return message


REFUSED = [
    (interaction("", RED), "", "interaction.event_id"),
    (interaction("x" * 129, RED), "", "interaction.event_id"),
    (interaction("a", ""), "a", "interaction.prompt"),
    (interaction("a", " \n"), "a", "interaction.prompt"),
    (interaction("a", "x" * 4097), "a", "interaction.prompt"),
    (interaction("a", RED, deep="x" * 600_000), "a", "."),
    (interaction("a", RED, 0, value=float("inf")), "a", "interaction.event_fields"),
    (_unknown_field("a"), "a", "interaction"),
]


@pytest.mark.parametrize(("message", "event_id", "field"), REFUSED)
async def test_wrong_syntax_is_refused_and_the_id_may_come_again(
    message: Any, event_id: str, field: str
) -> None:
    """WEIR-229, WEIR-301: INVALID_MESSAGE, nothing recorded, and the generation goes on."""
    async with steered() as viewer:
        await viewer.send(message)
        refused = await viewer.until("interaction_refused")
        await viewer.send(interaction("a", BLUE, 0))
        await viewer.barrier()
        made = await chunk(viewer)
    cause = failure_from_wire(refused.failure)
    assert cause.reason is Reason.INVALID_MESSAGE
    assert [violation.field for violation in cause.violations] == [field]
    assert refused.event_id == event_id
    assert lists(made) == (["a"], ["a"], ["a"], [])


async def test_after_a_stop_interactions_are_refused() -> None:
    """WEIR-229: SESSION_STATE, correlated; what was queued before is unfinished."""
    adapter = SteppedAdapter()
    async with (
        serving(adapter) as replica,
        viewing(replica.stub, config(BLACK, endless=True)) as viewer,
    ):
        assert await asyncio.to_thread(adapter.inside.acquire, True, 10)
        await viewer.send(interaction("a", RED), control("stop"), interaction("b", RED))
        refused = await viewer.until("interaction_refused")
        adapter.let_all()
        outcome = await viewer.until("outcome")
    assert refused.event_id == "b"
    assert failure_from_wire(refused.failure).reason is Reason.SESSION_STATE
    assert list(outcome.unfinished_event_ids) == ["a"]
    assert outcome.stopped


async def test_what_is_left_at_the_end_is_told_in_the_outcome() -> None:
    """WEIR-145: superseded and never named; running, pending and not yet encoded."""
    async with steered() as viewer:
        await viewer.send(interaction("a", RED, 5))
        await viewer.barrier()
        await chunk(viewer)
        await viewer.send(interaction("b", BLUE, 5), interaction("c", BLUE, 5))
        await viewer.barrier()
        assert await viewer.end() is None
    outcome = viewer.received[-1].outcome
    assert list(outcome.superseded_event_ids) == ["b"]
    assert list(outcome.unfinished_event_ids) == ["a", "c"]


async def test_a_chunk_that_fails_takes_no_id_with_it() -> None:
    """WEIR-145, WEIR-236: what only the lost chunk would have told is told by the outcome."""
    async with steered(fail_chunk=1) as viewer:
        for event_id in ("a", "b"):
            await viewer.send(interaction(event_id, RED, 0))
        await viewer.barrier()
        await viewer.send(credit())
        outcome = await viewer.until("outcome")
        status = await viewer.end()
    cause = failure_in(outcome)
    assert cause is not None
    assert cause.reason is Reason.INTERNAL
    assert status == cause
    assert list(outcome.superseded_event_ids) == ["a"]
    assert list(outcome.unfinished_event_ids) == ["b"]
    assert viewer.kinds[-1] == "outcome"
    assert "video_completed" not in viewer.kinds
    assert len(viewer.chunks) == outcome.transport_chunk_count == 1


async def test_only_so_many_wait_for_encoding() -> None:
    """WEIR-229: the one too many is refused with a delay, and may come again later."""
    adapter = SteppedAdapter()
    hold = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(text: str) -> tuple[float, float, float]:
        if text == RED:
            asyncio.run_coroutine_threadsafe(hold.wait(), loop).result(20)
        return (1.0, 2.0, 3.0)

    adapter.encode_prompt = slow  # type: ignore[method-assign]  # the model is slow for once
    async with (
        serving(adapter, WAITING_INTERACTIONS="3") as replica,
        viewing(replica.stub, config(BLACK, credits=100)) as viewer,
    ):
        await viewer.send(*(interaction(name, RED, 0) for name in "abcd"))
        refused = await viewer.until("interaction_refused")
        assert refused.event_id == "d"
        cause = failure_from_wire(refused.failure)
        assert (cause.reason, cause.retry_after_ms) == (Reason.OVERLOADED, 1000)
        hold.set()
        adapter.let_all()
        # There is room as soon as one of the three has been encoded, which nothing tells of.
        while viewer.received[-1].WhichOneof("message") != "interaction_queued":
            await viewer.send(interaction("d", BLUE, 0))
            await viewer.next()
        await viewer.watch()


async def test_a_hammer_of_interactions_during_boundaries_loses_none() -> None:
    """WEIR-145, WEIR-146: every id ends once, in order, whatever comes between chunks."""
    count = 300
    async with (
        serving(pattern(steps=2)) as replica,
        viewing(replica.stub, config(BLACK, credits=3, endless=True)) as viewer,
    ):

        async def hammer() -> None:
            for index in range(count):
                colour = f"#{index % 256:02x}4020"
                message = interaction(f"e{index}", colour, index % 4)
                await viewer.send(message)
                if index % 7 == 0:
                    await viewer.send(message)
            await viewer.send(control("stop"))

        writing = asyncio.create_task(hammer())
        outcome = await viewer.watch()
        await writing
        assert await viewer.end() is None
    ends: Counter[str] = Counter([*outcome.superseded_event_ids, *outcome.unfinished_event_ids])
    started: list[str] = []
    for made in viewer.media:
        ends.update([*made.completed_event_ids, *made.superseded_event_ids])
        started += made.started_event_ids
    queued = Counter(
        r.interaction_queued.event_id
        for r in viewer.received
        if r.WhichOneof("message") == "interaction_queued"
    )
    assert sum(queued.values()) + viewer.kinds.count("interaction_refused") == count + 43
    assert ends == Counter(set(queued))
    assert len(started) == len(set(started))
    assert started == sorted(started, key=lambda name: int(name[1:]))
    assert len(started) > 2
