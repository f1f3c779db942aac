"""Which voice adapters there are.

Owns: the one list of names. Does not own: finding a class (`services.runtime.adapter_registry`),
settings (`settings`), loading (`VoiceAdapter.load`). Importing this module imports no adapter and
no model library. Enforces: WEIR-310 (the registry is explicit).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from services.runtime.adapter_registry import UnknownAdapterError, find_adapter
from services.tts.adapters.base import VoiceAdapter
from services.tts.adapters.settings import AdapterSettings

__all__ = ["ADAPTERS", "AdapterFactory", "UnknownAdapterError", "resolve_adapter"]

ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "embedded": "services.tts.adapters.embedded.adapter:EmbeddedAdapter",
        "tone": "services.tts.adapters.tone:ToneAdapter",
    }
)
"""Name -> where the class is, imported only when it is asked for."""


class AdapterFactory(Protocol):
    """An adapter's class: called once with the settings."""

    def __call__(self, settings: AdapterSettings) -> VoiceAdapter:
        """Make the adapter. Cheap; raises ValueError for options it does not understand."""
        ...


def resolve_adapter(name: str) -> AdapterFactory:
    """Return the adapter class called `name`, or the one at `package.module:Class`.

    Raises UnknownAdapterError when there is no such name, module or class.
    """
    return cast(AdapterFactory, find_adapter("voice", ADAPTERS, name))
