"""Which voice adapters there are.

Owns: the one list of names, and finding an adapter's class from a name or from `module:Class`. Does
not own: settings (`settings`), loading (`VoiceAdapter.load`). Importing this module imports no
adapter and no model library. Enforces: WEIR-310 (the registry is explicit; an unknown name is a
clear error that lists the known ones).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from services.tts.adapters.base import VoiceAdapter
from services.tts.adapters.settings import AdapterSettings

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


class UnknownAdapterError(ValueError):
    """No adapter is called that; the message lists those that are."""


def resolve_adapter(name: str) -> AdapterFactory:
    """Return the adapter class called `name`, or the one at `package.module:Class`.

    Raises UnknownAdapterError when there is no such name, module or class.
    """
    target = ADAPTERS.get(name, name)
    module_name, separator, class_name = target.partition(":")
    if not (separator and module_name and class_name):
        # WEIR-310: never a guess, never a silent default.
        known = ", ".join(sorted(ADAPTERS))
        raise UnknownAdapterError(
            f"no voice adapter is called {name!r}; known: {known}, or package.module:Class"
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Only the module asked for may be missing; a broken import inside it is another fault.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UnknownAdapterError(f"voice adapter {name!r}: no module {module_name}") from error
    factory = getattr(module, class_name, None)
    if not callable(factory):
        raise UnknownAdapterError(f"voice adapter {name!r}: {module_name} has no {class_name}")
    return cast(AdapterFactory, factory)
