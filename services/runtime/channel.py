"""Client ends: how a channel is opened and how a call is owned.

Owns: target syntax, channels, and the scope that ends a call. Does not own: the options
(`transport`), what a failed call means (`errors`), or when to call again (the edge's backends).
Enforces: WEIR-063 (a call never outlives its scope).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import grpc
import grpc.aio

from services.runtime.transport import ChannelSettings, channel_options

_SCHEMES = ("dns:", "ipv4:", "ipv6:", "unix:")
_HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})")
_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}")


class Cancellable(Protocol):
    """What a scope needs of a call; every `grpc.aio` call has it."""

    def cancel(self) -> bool:
        """End the call unless it has ended; True when this did it."""
        ...


Call = TypeVar("Call", bound=Cancellable)


def open_channel(
    target: str,
    settings: ChannelSettings | None = None,
    *,
    credentials: grpc.ChannelCredentials | None = None,
) -> grpc.aio.Channel:
    """Open a channel to every address of `target`; calls are spread over them in turn.

    Connections are made when the first call needs them. `target` is as in `parse_target`; without
    `credentials` the connection is in the clear. Raises ValueError for a target that is none.
    Close it with `await channel.close()` or `async with`.
    """
    options = channel_options(settings or ChannelSettings())
    if credentials is None:
        return grpc.aio.insecure_channel(parse_target(target), options=options)
    return grpc.aio.secure_channel(parse_target(target), credentials, options=options)


def parse_target(target: str) -> str:
    """Return the gRPC name of `host:port`, of a list of IPv4 `address:port` separated by commas, or
    of a name that already has one of the schemes dns:, ipv4:, ipv6:, unix:.

    A host name stands for all the addresses that DNS has for it. Raises ValueError for others.
    """
    text = target.strip()
    if text.startswith(_SCHEMES):
        return text
    matches = [_HOST_AND_PORT.fullmatch(part.strip()) for part in text.split(",")]
    places = [(match["host"], int(match["port"])) for match in matches if match is not None]
    if len(places) != len(matches) or any(not 0 < port <= 65535 for _, port in places):
        raise ValueError("a target is host:port, IPv4 addresses with ports, or dns:, ipv4:, unix:")
    if all(_IPV4.fullmatch(host) for host, _ in places):
        return "ipv4:" + ",".join(f"{host}:{port}" for host, port in places)
    if len(places) > 1:
        raise ValueError("a list holds IPv4 addresses only; a name stands for all of its own")
    host, port = places[0]
    return f"ipv6:{host}:{port}" if host.startswith("[") else f"dns:///{host}:{port}"


@asynccontextmanager
async def owned_call(call: Call) -> AsyncIterator[Call]:
    """Own `call` for the length of a scope: when that is left, the call has ended.

    Use it for every call: `async with owned_call(stub.Synthesize(request)) as call:`.
    """
    try:
        yield call
    finally:
        # WEIR-063: grpc.aio does not cancel a call whose object is dropped; the backend would
        # speak to nobody until its deadline. A call that has ended ignores this.
        call.cancel()
