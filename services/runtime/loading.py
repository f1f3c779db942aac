"""Making and loading a model adapter, off the event loop.

Owns: the way from settings to an adapter with every refusal as one clear sentence, and calls that
may take minutes and are abandoned when nobody waits any more. Does not own: adapters, which names
there are (`adapter_registry` finds them).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Adapter = TypeVar("Adapter")
Settings = TypeVar("Settings")


class AdapterRefusedError(Exception):
    """The settings name no usable adapter; the message says which setting and why."""


def make_adapter(
    prefix: str,
    find: Callable[[], Callable[[Settings], Adapter]],
    settings: Settings,
) -> Adapter:
    """Return the adapter whose class `find` gives, made with `settings` and not loaded yet.

    `prefix` is that of the process's variables. Raises AdapterRefusedError naming `*_ADAPTER` for
    what `find` refuses and `*_ADAPTER_OPTIONS` for what the constructor refuses.
    """
    try:
        factory = find()
    except (ValueError, ImportError) as error:
        raise AdapterRefusedError(f"{prefix}ADAPTER: {error}") from error
    try:
        return factory(settings)
    except (ValueError, ImportError) as error:
        raise AdapterRefusedError(f"{prefix}ADAPTER_OPTIONS: {error}") from error


async def off_the_loop(call: Callable[[], None], name: str) -> None:
    """Run `call` on a thread called `name` that does not hold up the end of the process.

    An executor's thread would: minutes of loading that nobody waits for any more. Raises what it
    raises. When cancelled it returns at once, and `call` goes on alone: it cannot be interrupted.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            call()
        except BaseException as raised:  # Whatever it is, whoever awaits must hear of it.
            error = raised
        with suppress(RuntimeError):  # The loop is closed: this was abandoned.
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    await done
