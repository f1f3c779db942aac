"""`python -m tests.integration.video.watching_client HOST:PORT`: a client to be killed.

Owns: one endless generation that it gives credit to, and a line on stderr when it has been accepted
and when the first chunk has come. It ends by itself only when the call does.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tests.integration.video.serving import connected, viewing
from tests.unit.video.support import config, credit


def _tell(event: str) -> None:
    print(json.dumps({"event": event}), file=sys.stderr, flush=True)


async def _watch(address: str) -> None:
    async with (
        connected(address) as stub,
        viewing(stub, config(endless=True, credits=10)) as viewer,
    ):
        _tell("accepted")
        while True:
            await viewer.until("chunk")
            _tell("chunk")
            await viewer.send(credit())


if __name__ == "__main__":
    asyncio.run(_watch(sys.argv[1]))
