"""Finding a video adapter by name; what is shared with the voices is tested there."""

from __future__ import annotations

import pytest

from services.runtime.adapter_registry import UnknownAdapterError
from services.video.adapters.pattern import PatternAdapter
from services.video.adapters.registry import ADAPTERS, resolve_adapter
from services.video.adapters.settings import AdapterSettings


def test_a_registered_name_and_a_class_of_ones_own_are_found() -> None:
    """WEIR-310: others bring their own without touching the registry."""
    assert resolve_adapter("pattern") is PatternAdapter
    assert resolve_adapter("services.video.adapters.pattern:PatternAdapter") is PatternAdapter


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_registered_adapter_can_be_made_before_anything_is_loaded(name: str) -> None:
    """WEIR-310: a constructor is cheap; it needs no weights."""
    assert resolve_adapter(name)(AdapterSettings()) is not None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nope", "no video adapter is called 'nope'; known: .*pattern"),
        ("services.video.adapters.nope:Class", "no module services.video.adapters.nope"),
        ("services.video.adapters.pattern:Nope", "has no Nope"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_clear_error(name: str, told: str) -> None:
    """WEIR-310: the error names what is known; there is no default."""
    with pytest.raises(UnknownAdapterError, match=told):
        resolve_adapter(name)
