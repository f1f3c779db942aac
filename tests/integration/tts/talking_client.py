"""`python -m tests.integration.tts.talking_client HOST:PORT`: a client to be killed.

Owns: one call that reads whatever comes, and a line on stderr when it has been accepted and when
the first audio has come. It ends by itself only when the call does.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tests.integration.tts.serving import connected, kind_of_next, speaking
from tests.unit.tts.support import wire_request

CALL_S = 60.0


async def _talk(address: str) -> None:
    told: set[str] = set()
    async with (
        connected(address) as stub,
        speaking(stub, wire_request("x" * 10_000), CALL_S) as call,
    ):
        while (kind := await kind_of_next(call)) is not None:
            if kind not in told:
                told.add(kind)
                print(json.dumps({"event": kind}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(_talk(sys.argv[1]))
