"""A peer of the edge that reads only when it is told to, which no well-behaved client can be.

Owns: a socket with small buffers, the handshake and client frames. Does not own: what a test does
with it. Frames are made by the WebSocket library; nothing of the library reads by itself here.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.frames import Frame, Opcode

RECEIVE_BUFFER_BYTES = 4096
PATIENCE_S = 10.0

_HANDSHAKE = (
    b"GET /v1/audio/speech/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)


class RawPeer:
    """A connection after its handshake."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()

    async def say(self, kind: str, **fields: object) -> None:
        """Send one message."""
        await self.send(text_frame(kind, **fields))

    async def send(self, data: bytes, timeout_s: float = PATIENCE_S) -> None:
        """Send bytes. TimeoutError when the other side takes no more."""
        async with asyncio.timeout(timeout_s):
            await self._loop.sock_sendall(self._socket, data)

    async def read(self, most: int = 65536, timeout_s: float = PATIENCE_S) -> bytes:
        """Return some bytes; empty at the end. ConnectionError when it was reset."""
        async with asyncio.timeout(timeout_s):
            return await self._loop.sock_recv(self._socket, most)

    def break_off(self, *, reset: bool) -> None:
        """End the connection without a close frame: by a reset, or by saying no more."""
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.close()
        else:
            self._socket.shutdown(socket.SHUT_WR)

    async def read_until(self, what: bytes) -> int:
        """Read until `what` has come; return how many bytes that took."""
        count, tail = 0, b""
        while what not in tail:
            data = await self.read()
            assert data, "the connection ended"
            count += len(data)
            tail = tail[-len(what) :] + data
        return count


def text_frame(kind: str, **fields: object) -> bytes:
    """Return a message as a client's frame."""
    body = json.dumps({"type": kind, **fields}).encode()
    return Frame(Opcode.TEXT, body).serialize(mask=True)


def ping_frame(payload: bytes) -> bytes:
    """Return a ping of the WebSocket protocol itself."""
    return Frame(Opcode.PING, payload).serialize(mask=True)


@asynccontextmanager
async def raw_peer(address: str, **config: object) -> AsyncIterator[RawPeer]:
    """Connect, shake hands and configure; from then on nothing is read."""
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        # Small, so that what the peer does not read soon waits at the edge.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        sock.setblocking(False)
        await loop.sock_connect(sock, (host, int(port)))
        peer = RawPeer(sock)
        await peer.send(_HANDSHAKE)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await peer.read(1)
        assert head.startswith(b"HTTP/1.1 101 ")
        await peer.say("session.config", **config)
        yield peer
