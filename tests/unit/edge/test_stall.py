"""The watch that removes peers that have stopped reading, with a fake transport and clock."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from services.edge.stall import StallWatch

LIMIT_S = 30.0


class FakeTransport:
    """The write buffer of a transport, moved by the test."""

    def __init__(self) -> None:
        self.waiting = 0
        self.aborts = 0

    def get_write_buffer_size(self) -> int:
        """Bytes that wait."""
        return self.waiting

    def abort(self) -> None:
        """Count the abort."""
        self.aborts += 1


class Peer:
    """A watched connection whose time and network the test moves."""

    def __init__(self) -> None:
        self.transport = FakeTransport()
        self.now = 1000.0
        self.watch = StallWatch(
            cast(asyncio.WriteTransport, self.transport), LIMIT_S, lambda: self.now
        )

    def send(self, size: int) -> None:
        """Give `size` bytes to the transport as the writer does."""
        self.watch.before_write()
        self.transport.waiting += size
        self.watch.after_write()

    def drain(self, size: int) -> None:
        """Let the peer read."""
        self.transport.waiting = max(0, self.transport.waiting - size)

    def look(self, seconds: float) -> bool:
        """Let time pass and look."""
        self.now += seconds
        return self.watch.look()


@pytest.fixture
def peer() -> Peer:
    """A connection on which nothing has happened."""
    return Peer()


def test_a_peer_that_drains_nothing_is_aborted_at_the_limit(peer: Peer) -> None:
    """WEIR-161: at the send deadline, neither before it nor never."""
    peer.send(1000)
    assert not peer.look(0)
    assert not peer.look(LIMIT_S - 0.001)
    assert peer.transport.aborts == 0
    assert peer.look(0.001)
    assert peer.watch.stalled
    assert peer.transport.aborts == 1


def test_an_idle_connection_is_kept(peer: Peer) -> None:
    """WEIR-161: nothing to drain is no stall."""
    assert not any(peer.look(LIMIT_S) for _ in range(10))
    peer.send(10)
    assert not peer.look(LIMIT_S - 1), "the window begins when something waits"


def test_a_peer_that_has_drained_everything_is_kept(peer: Peer) -> None:
    """WEIR-161: the window of an empty buffer is always fresh."""
    for _ in range(20):
        peer.send(5000)
        peer.drain(5000)
        assert not peer.look(LIMIT_S)


def test_a_slow_peer_that_moves_is_kept(peer: Peer) -> None:
    """WEIR-161: one byte within the limit is movement, for as long as it takes."""
    peer.send(100)
    for _ in range(99):
        peer.drain(1)
        assert not peer.look(LIMIT_S)


def test_a_slow_peer_is_kept_while_the_writer_refills_the_buffer(peer: Peer) -> None:
    """WEIR-161: movement is what drained, also when the buffer is as full as before."""
    peer.send(64_000)
    for _ in range(20):
        peer.drain(50)
        peer.send(50)
        assert not peer.look(LIMIT_S - 1)


@pytest.mark.parametrize("overhead", [0, 2, 4, 10, 200_000])
def test_the_size_of_what_is_sent_hides_no_movement(peer: Peer, overhead: int) -> None:
    """WEIR-161: frame headers and text in several bytes a character count for nobody."""
    for _ in range(20):
        peer.drain(100)
        peer.send(100_000 + overhead)
        assert not peer.look(LIMIT_S - 1)


def test_more_to_send_is_no_movement(peer: Peer) -> None:
    """WEIR-161: what the writer adds does not save a peer that reads nothing."""
    peer.send(100)
    for _ in range(5):
        assert not peer.look(LIMIT_S / 6)
        peer.send(100)
    assert peer.look(LIMIT_S / 6)


def test_a_peer_that_stops_after_moving_gets_one_full_window(peer: Peer) -> None:
    """WEIR-161: the limit counts from the last movement."""
    peer.send(100)
    peer.look(LIMIT_S - 1)
    peer.drain(1)
    assert not peer.look(0)
    assert not peer.look(LIMIT_S - 0.001)
    assert peer.look(0.001)


def test_it_looks_several_times_within_the_limit(peer: Peer) -> None:
    """WEIR-161: a removal is late by a fraction of the limit at most."""
    assert 0 < peer.watch.interval_s <= LIMIT_S / 4
