"""Targets are read strictly, and a call never outlives its scope."""

from __future__ import annotations

import pytest

from services.runtime.channel import owned_call, parse_target
from services.runtime.transport import (
    ChannelSettings,
    ServerSettings,
    channel_options,
    server_options,
)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("localhost:50051", "dns:///localhost:50051"),
        (" tts.weir.svc.cluster.local:50051 ", "dns:///tts.weir.svc.cluster.local:50051"),
        ("127.0.0.1:50051", "ipv4:127.0.0.1:50051"),
        ("10.0.0.1:1, 10.0.0.2:65535", "ipv4:10.0.0.1:1,10.0.0.2:65535"),
        ("[::1]:50051", "ipv6:[::1]:50051"),
        ("ipv4:10.0.0.1:1,10.0.0.2:2", "ipv4:10.0.0.1:1,10.0.0.2:2"),
        ("dns:///tts:50051", "dns:///tts:50051"),
        ("unix:/run/tts.sock", "unix:/run/tts.sock"),
    ],
)
def test_a_target_becomes_a_name_that_grpc_resolves(target: str, name: str) -> None:
    """WEIR-062: names go to DNS, which gives all addresses; lists stay lists."""
    assert parse_target(target) == name


@pytest.mark.parametrize(
    "target",
    ["", "tts", "tts:", ":50051", "tts:0", "tts:65536", "tts:http", "http://tts:50051", "a:1,b:2",
     "10.0.0.1:1,", "10.0.0.1:1,b:2", "a b:1", "::1:50051", "[::1]:1,[::2]:2"],
)  # fmt: skip
def test_anything_else_is_refused(target: str) -> None:
    """WEIR-062: a mistake shows when the channel is opened, not as an unreachable backend."""
    with pytest.raises(ValueError, match=r"^a (target|list)"):
        parse_target(target)


class Call:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> bool:
        self.cancelled = True
        return True


async def test_a_call_is_cancelled_when_its_scope_is_left() -> None:
    """WEIR-063: after success as after an exception."""
    async with owned_call(Call()) as call:
        assert not call.cancelled
    assert call.cancelled
    failed = Call()
    with pytest.raises(ValueError, match="of the reader"):
        async with owned_call(failed):
            raise ValueError("of the reader")
    assert failed.cancelled


def test_the_defaults_of_both_ends_fit_each_other() -> None:
    """WEIR-061: clients ping less often than servers permit, and sizes agree."""
    server, client = (
        dict(server_options(ServerSettings())),
        dict(channel_options(ChannelSettings())),
    )
    permitted = server["grpc.http2.min_ping_interval_without_data_ms"]
    assert int(client["grpc.keepalive_time_ms"]) >= 2 * int(permitted)
    assert client["grpc.max_send_message_length"] == server["grpc.max_receive_message_length"]
    assert client["grpc.max_receive_message_length"] == server["grpc.max_send_message_length"]
    for end in (server, client):
        assert (end["grpc.http2.bdp_probe"], end["grpc.http2.lookahead_bytes"]) == (0, 65536)
