"""Finding a model adapter's class by its registered name or by `package.module:Class`.

Owns: the look-up and what a name that leads nowhere is told. Does not own: the list of names (each
service has its own), settings, loading. Enforces: WEIR-310 (the registry is explicit; an unknown
name is a clear error that lists the known ones).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast


class UnknownAdapterError(ValueError):
    """No adapter is called that; the message lists those that are."""


def find_adapter(kind: str, adapters: Mapping[str, str], name: str) -> Callable[..., Any]:
    """Return the class called `name` in `adapters`, or the one at `package.module:Class`.

    `kind` is what the adapters are called in errors (voice, video); `adapters` maps names to
    `package.module:Class`, imported only now. Raises UnknownAdapterError when there is no such
    name, module or class.
    """
    module_name, separator, class_name = adapters.get(name, name).partition(":")
    if not (separator and module_name and class_name):
        # WEIR-310: never a guess, never a silent default.
        known = ", ".join(sorted(adapters))
        raise UnknownAdapterError(
            f"no {kind} adapter is called {name!r}; known: {known}, or package.module:Class"
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Only the module asked for may be missing; a broken import inside it is another fault.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UnknownAdapterError(f"{kind} adapter {name!r}: no module {module_name}") from error
    factory = getattr(module, class_name, None)
    if not callable(factory):
        raise UnknownAdapterError(f"{kind} adapter {name!r}: {module_name} has no {class_name}")
    return cast("Callable[..., Any]", factory)
