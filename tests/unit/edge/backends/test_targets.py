"""The grammar of a target list and one look at the name service."""

from __future__ import annotations

import pytest

from services.edge.backends.targets import MAX_TARGETS, Address, Target, parse_targets, resolve


def test_a_list_names_addresses_and_names_in_its_order() -> None:
    """WEIR-132: each address is one replica, each name as many as it has addresses."""
    targets = parse_targets(("10.0.0.7:50051", "[::1]:50052", "tts.internal:1"))
    assert targets == (
        Target("10.0.0.7", 50051),
        Target("::1", 50052),
        Target("tts.internal", 1),
    )
    assert [target.address for target in targets] == [
        Address("10.0.0.7", 50051),
        Address("::1", 50052),
        None,
    ]
    assert [str(target.address) for target in targets[:2]] == ["10.0.0.7:50051", "[::1]:50052"]


@pytest.mark.parametrize(
    "entry",
    ["", "tts", "tts:", ":50051", "tts:0", "tts:65536", "tts:1:2", "::1:50051", "[tts]:1", "a b:1"],
)
def test_an_entry_that_is_no_target_is_named_in_the_error(entry: str) -> None:
    """WEIR-050: the operator sees which entry is at fault."""
    with pytest.raises(ValueError, match=r"must be host:port|no IPv6 address") as caught:
        parse_targets(("127.0.0.1:1", entry))
    assert repr(entry) in str(caught.value)


def test_an_entry_that_stands_twice_is_refused() -> None:
    """WEIR-132: one replica is counted once."""
    with pytest.raises(ValueError, match="stands twice"):
        parse_targets(("tts:1", "tts:1"))


@pytest.mark.parametrize("count", [0, MAX_TARGETS + 1])
def test_a_list_is_neither_empty_nor_unbounded(count: int) -> None:
    """WEIR-132: nothing is unbounded."""
    with pytest.raises(ValueError, match="1 to"):
        parse_targets(tuple(f"10.0.{n // 256}.{n % 256}:1" for n in range(count)))


async def test_a_name_is_looked_up_with_the_systems_resolver() -> None:
    """WEIR-132: the loopback name has the loopback address."""
    assert Address("127.0.0.1", 7) in await resolve(Target("localhost", 7))


async def test_a_name_that_can_be_none_is_an_error_and_no_crash() -> None:
    """WEIR-132: a label has at most 63 characters; the pool takes this for no answer."""
    with pytest.raises(UnicodeError):
        await resolve(Target("a" * 64, 7))
