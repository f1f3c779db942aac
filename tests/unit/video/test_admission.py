"""The slots of a replica."""

from __future__ import annotations

import asyncio

import pytest

from contracts.errors import Reason, WeirError
from services.video.admission import Admission


async def test_slots_are_taken_refused_and_given_back() -> None:
    """WEIR-228: OVERLOADED with a delay beyond the last one."""
    admission = Admission(2, 250)
    slots = [admission.take(), admission.take()]
    with pytest.raises(WeirError) as raised:
        admission.take()
    refused = raised.value.failure
    assert (refused.reason, refused.retry_after_ms) == (Reason.OVERLOADED, 250)
    slots[0].release()
    assert admission.busy == 1
    admission.take()
    assert admission.busy == 2


async def test_a_slot_is_given_back_once() -> None:
    """WEIR-228: however often it is released."""
    admission = Admission(2, 250)
    slot, _ = admission.take(), admission.take()
    for _ in range(3):
        slot.release()
    assert admission.busy == 1


async def test_a_draining_replica_takes_nobody() -> None:
    """WEIR-068: SHUTTING_DOWN, with a delay, although there is a slot."""
    admission = Admission(1, 250)
    admission.drain()
    with pytest.raises(WeirError) as raised:
        admission.take()
    assert raised.value.failure.reason is Reason.SHUTTING_DOWN
    assert raised.value.failure.retry_after_ms == 250


async def test_empty_is_told_when_the_last_slot_is_free() -> None:
    """WEIR-228: at once when none is held."""
    admission = Admission(2, 250)
    await admission.empty()
    slots = [admission.take(), admission.take()]
    waiting = asyncio.create_task(admission.empty())
    slots[0].release()
    await asyncio.sleep(0)
    assert not waiting.done()
    slots[1].release()
    await waiting
