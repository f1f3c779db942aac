"""Prompts into prompt states, first in, first out, on a thread of their own.

Owns: the prompt thread and its queue. Does not own: how much a generation may have in the queue
(`interactions`), what becomes of a prompt (`timeline`). Enforces: WEIR-233 (prompts are encoded off
the generation thread, in the order in which they came; a prompt that fails fails alone).
"""

from __future__ import annotations

import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

from contracts.generation import Interaction
from services.runtime.loading import off_the_loop
from services.runtime.logging import get_logger
from services.video.adapters.base import EventAdapter, ModelUnavailableError, VideoAdapter
from services.video.interactions import Interactions

_log = get_logger(__name__)


class PromptEncoder:
    """The prompt thread of a replica.

    Raises ModelUnavailableError for an adapter that declares event fields and cannot read them.
    """

    def __init__(self, adapter: VideoAdapter[Any, Any, Any]) -> None:
        self._adapter = adapter
        if adapter.capabilities.event_fields and not callable(
            getattr(adapter, "encode_event", None)
        ):
            raise ModelUnavailableError("the adapter declares event fields but reads none")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prompts")

    def first(self, text: str) -> Future[Any]:
        """Encode the prompt that a generation begins with; the future raises what fails."""
        return self._submit(self._adapter.encode_prompt, text)

    def update(self, interaction: Interaction, interactions: Interactions[Any]) -> None:
        """Encode the prompt of an admitted interaction and hand it to `interactions`."""
        self._submit(self._update, interaction, interactions)

    def close(self) -> None:
        """Drop what waits and end the thread after what it is doing; do not wait for it."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def left(self) -> None:
        """Return when the thread has ended after `close`."""
        await off_the_loop(self._thread.shutdown, "leave the prompt thread")

    def _submit(self, call: Any, *arguments: object) -> Future[Any]:
        # The thread's log lines carry the ids of the call.
        return self._thread.submit(contextvars.copy_context().run, call, *arguments)

    def _update(self, interaction: Interaction, interactions: Interactions[Any]) -> None:
        if not interactions.wanted(interaction.event_id):
            return
        try:
            value = self._encode(interaction)
        except Exception as error:
            _log.warning("prompt_not_encoded", error=error)
            interactions.failed(interaction.event_id)
            return
        interactions.encoded(interaction, value)

    def _encode(self, interaction: Interaction) -> Any:
        if interaction.event_fields:
            reader = cast("EventAdapter[Any]", self._adapter)
            return reader.encode_event(interaction.prompt, interaction.event_fields)
        return self._adapter.encode_prompt(interaction.prompt)
