"""Which text frontend serves which commitment profile.

Owns: the table of profiles, and bringing in the modules that add to it. Does not own: the
frontends, nor which profile an adapter or a session may use.
Enforces: IO-INV-102, the part that says a profile never changes its meaning silently: a name is
registered once.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Final, Protocol

from services.edge.text import zh_en_special_v1
from services.edge.text.commitment import create_zh_en_special_v1
from services.edge.text.frontend import StreamingTextFrontend


class StreamingTextFrontendFactory(Protocol):
    """Makes a frontend with fresh state for one utterance."""

    def __call__(self, *, language: str, max_pending_characters: int) -> StreamingTextFrontend:
        """ValueError when the limit is not positive."""
        ...


_FACTORIES: Final[dict[str, StreamingTextFrontendFactory]] = {
    zh_en_special_v1.PROFILE: create_zh_en_special_v1,
}


def register_streaming_text_frontend(profile: str, factory: StreamingTextFrontendFactory) -> None:
    """Add a profile. ValueError when the name is empty or taken."""
    if not profile:
        raise ValueError("a commitment profile needs a name")
    # IO-INV-102: what a name means is settled once.
    if profile in _FACTORIES:
        raise ValueError(f"commitment profile {profile!r} is registered already")
    _FACTORIES[profile] = factory


def get_streaming_text_frontend_factory(profile: str) -> StreamingTextFrontendFactory:
    """The factory of a profile. ValueError when the name is unknown."""
    factory = _FACTORIES.get(profile)
    if factory is None:
        known = ", ".join(sorted(_FACTORIES))
        raise ValueError(f"unknown commitment profile {profile!r}; known are: {known}")
    return factory


def registered_profiles() -> tuple[str, ...]:
    """The names of all profiles, in order of registration."""
    return tuple(_FACTORIES)


def import_frontend_modules(names: Iterable[str]) -> None:
    """Import the modules that register frontends of others; each does so when it is imported.

    ValueError names the module that is missing or that failed, with the failure as its cause.
    """
    for name in names:
        if not name or name.startswith("."):
            raise ValueError(f"not an absolute module name: {name!r}")
        try:
            importlib.import_module(name)
        except Exception as failure:
            kind = type(failure).__name__
            raise ValueError(
                f"frontend module {name!r} cannot be imported: {kind}: {failure}"
            ) from failure
