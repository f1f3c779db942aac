"""Where replicas are: target strings, and the addresses they stand for at the moment.

Owns: the grammar of a target list and one look at the name service. Does not own: when to look
again, or what to do with an address (`pool`).

A target is `host:port`; an IPv6 address stands in brackets. An IP address is one replica. A name
stands for every address it resolves to, one replica each.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

_TARGET = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>\d{1,5})")
MAX_TARGETS = 256


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """One IP address and port, as gRPC takes it: `10.0.0.7:50051`, `[::1]:50051`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Target:
    """One entry of a target list."""

    host: str
    port: int

    @property
    def address(self) -> Address | None:
        """The address itself when the host is one; None for a name that must be looked up."""
        try:
            return Address(str(ipaddress.ip_address(self.host)), self.port)
        except ValueError:
            return None


Resolve = Callable[[Target], Awaitable[tuple[Address, ...]]]
"""Looks a name up. Raises OSError when there is no answer."""


def parse_targets(entries: Sequence[str]) -> tuple[Target, ...]:
    """Read the entries of a target list. Raises ValueError that names the entry at fault."""
    if not 1 <= len(entries) <= MAX_TARGETS:
        raise ValueError(f"a target list has 1 to {MAX_TARGETS} entries")
    targets: list[Target] = []
    for entry in entries:
        match = _TARGET.fullmatch(entry)
        if match is None or not 1 <= int(match["port"]) <= 65535:
            raise ValueError(f"target {entry!r} must be host:port with a port from 1 to 65535")
        target = Target(match["six"] or match["host"], int(match["port"]))
        if match["six"] and target.address is None:
            raise ValueError(f"target {entry!r} has no IPv6 address between its brackets")
        if target in targets:
            raise ValueError(f"target {entry!r} stands twice in the list")
        targets.append(target)
    return tuple(targets)


async def resolve(target: Target) -> tuple[Address, ...]:
    """Look a name up with the system's resolver, off the event loop; sorted, without repetitions.

    Raises OSError (socket.gaierror) when the name is not known or nobody answers.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return tuple(sorted({Address(str(sockaddr[0]), target.port) for *_, sockaddr in found}))
