"""`python -m tests.integration.faults.vanishing_client ADDRESS TEXT`: a client to be killed.

It speaks one text, logs `hearing` when the first audio has come, and then listens on.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tests.integration.edge.client import STREAMED, connected


async def main(address: str, text: str) -> None:
    """Speak and listen until the connection ends."""
    async with connected(address, STREAMED) as client:
        await client.text(text)
        await client.send("input.done")
        told = False
        async for frame in client.socket:
            if isinstance(frame, bytes) and not told:
                told = True
                print(json.dumps({"event": "hearing"}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
