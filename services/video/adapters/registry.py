"""Which video adapters there are.

Owns: the one list of names. Does not own: finding a class (`services.runtime.adapter_registry`),
settings (`settings`), loading (`VideoAdapter.load`). Importing this module imports no adapter and
no model library. Enforces: WEIR-310 (the registry is explicit).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, cast

from services.runtime.adapter_registry import find_adapter
from services.video.adapters.base import VideoAdapter
from services.video.adapters.settings import AdapterSettings

ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "anyflow_far": "services.video.adapters.anyflow_far.adapter:AnyFlowFarAdapter",
        "helios": "services.video.adapters.helios.adapter:HeliosAdapter",
        "pattern": "services.video.adapters.pattern:PatternAdapter",
    }
)
"""Name -> where the class is, imported only when it is asked for."""


class AdapterFactory(Protocol):
    """An adapter's class: called once with the settings."""

    def __call__(self, settings: AdapterSettings) -> VideoAdapter[Any, Any, Any]:
        """Make the adapter. Cheap; raises ValueError for options it does not understand."""
        ...


def resolve_adapter(name: str) -> AdapterFactory:
    """Return the adapter class called `name`, or the one at `package.module:Class`.

    Raises `services.runtime.adapter_registry.UnknownAdapterError` when there is none.
    """
    return cast(AdapterFactory, find_adapter("video", ADAPTERS, name))
