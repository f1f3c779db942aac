"""The driver while a long text is being cut on a thread: everything else of the session waits.

The text frontend is a gate that the test opens, so that "meanwhile" has no end of its own. Socket,
driver and session core are the real ones; the backend gives its updates when told.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from websockets.asyncio.server import ServerConnection, serve

from contracts.capabilities import SpeechCapabilities
from contracts.modality import Accepted, AudioChunk, AudioFormat, IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.settings import EdgeSettings
from services.edge.speech.driver import SpeechConnection
from services.edge.speech.metrics import SpeechMetrics
from services.edge.speech.negotiation import Agreement
from services.edge.speech.terms import SpeechLimits, SpeechTerms
from services.edge.stall import GuardedConnection
from services.edge.text.buffered import BufferedTextFrontend
from services.edge.text.frontend import Segment
from services.runtime.metrics import Metrics
from tests.integration.edge.client import STREAMED, SpeechClient, connected
from tests.unit.edge.speech.session_fixture import POLICY, STANDARD

LONG = "x" * 5000


class GatedFrontend(BufferedTextFrontend):
    """Cuts sentences; a long text only once the gate is open."""

    __slots__ = ("_gate",)

    def __init__(self, gate: Gate) -> None:
        super().__init__("sentence")
        self._gate = gate

    def feed(self, text: str) -> list[Segment]:
        """Wait for the gate when the text is long."""
        if len(text) == len(LONG):
            self._gate.reached.set()
            assert self._gate.open.wait(10)
        return super().feed(text)


@dataclass
class Gate:
    """Where a long text waits."""

    reached: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)


@dataclass
class Backend:
    """Gives one chunk for every permit, and counts what was taken."""

    permits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    taken: int = 0
    given_up: asyncio.Event = field(default_factory=asyncio.Event)

    def capabilities(self) -> SpeechCapabilities | None:
        """The usual ones."""
        return STANDARD

    async def synthesize(
        self, request: SegmentRequest, *, deadline_s: float, retry_after_accept: bool = False
    ) -> AsyncGenerator[IdentifiedUpdate, None]:
        """Accept, then speak as permitted."""
        output = AudioFormat(request.output.encoding, 24000)
        yield IdentifiedUpdate(request.identity, Accepted(output))
        try:
            while True:
                await self.permits.acquire()
                chunk = AudioChunk(self.taken, b"\0\0")
                self.taken += 1
                yield IdentifiedUpdate(request.identity, chunk)
        finally:
            self.given_up.set()


@dataclass
class Session:
    """Both ends of one connection, and what the test holds in its hands."""

    client: SpeechClient
    connection: SpeechConnection
    backend: Backend
    gate: Gate

    async def cut_a_long_text(self) -> None:
        """Send a long text, and return when it is being cut."""
        await self.client.text(LONG)
        assert await asyncio.to_thread(self.gate.reached.wait, 10)


@asynccontextmanager
async def session() -> AsyncIterator[Session]:
    """Serve one session in this process."""
    gate, backend = Gate(), Backend()
    connections: asyncio.Queue[SpeechConnection] = asyncio.Queue()

    def open_frontend(agreement: Agreement, max_pending: int) -> GatedFrontend:
        return GatedFrontend(gate)

    terms = SpeechTerms("s", POLICY, SpeechLimits(), open_frontend)

    async def handle(websocket: ServerConnection) -> None:
        assert isinstance(websocket, GuardedConnection)
        connection = SpeechConnection(
            websocket, backend, terms, EdgeSettings().transmission(), SpeechMetrics(Metrics("edge"))
        )
        connections.put_nowait(connection)
        await connection.run()

    async with serve(handle, "127.0.0.1", 0, create_connection=GuardedConnection) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with connected(f"127.0.0.1:{port}", STREAMED) as client:
            try:
                yield Session(client, await connections.get(), backend, gate)
            finally:
                gate.open.set()
                await client.socket.close()


async def test_the_end_of_the_process_is_told_after_the_text_that_came_first() -> None:
    """WEIR-162: a session is touched by one thread at a time, and its events keep their order."""
    async with session() as talk:
        await talk.cut_a_long_text()
        talk.connection.shut_down(final=True)
        with pytest.raises(TimeoutError):
            await talk.client.next(0.1)
        talk.gate.open.set()
        assert (await talk.client.error("shutting_down"))["utterance_index"] == 0
        assert (await talk.client.closed())[0] == 1012


async def test_audio_waits_at_the_backend_while_a_long_text_is_cut() -> None:
    """WEIR-160: a fast voice piles nothing up meanwhile; afterwards it speaks on."""
    async with session() as talk:
        await talk.client.text("One. T")
        await talk.client.message("audio.start")
        await talk.cut_a_long_text()
        for _ in range(100):
            talk.backend.permits.release()
        with pytest.raises(TimeoutError):
            await talk.client.next(0.1)
        assert talk.backend.taken == 1
        talk.gate.open.set()
        for _ in range(100):
            assert await talk.client.next() == b"\0\0"


async def test_a_peer_that_leaves_while_its_text_is_cut_leaves_nothing_behind() -> None:
    """WEIR-163: the session ends when the text has been cut, and its segment is given up."""
    async with session() as talk:
        await talk.client.text("One. T")
        await talk.client.message("audio.start")
        await talk.cut_a_long_text()
        talk.client.socket.transport.abort()
        assert not talk.backend.given_up.is_set()
        talk.gate.open.set()
        async with asyncio.timeout(10):
            await talk.backend.given_up.wait()
