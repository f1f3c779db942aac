"""The registry of text frontends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from services.edge.text import registry
from services.edge.text.commitment import create_zh_en_special_v1
from services.edge.text.registry import (
    get_streaming_text_frontend_factory,
    import_frontend_modules,
    register_streaming_text_frontend,
    registered_profiles,
)


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test registers into a table of its own."""
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))


def test_the_built_in_profile_is_registered() -> None:
    """IO-INV-102: the profile's name selects its factory."""
    assert "zh_en_special_v1" in registered_profiles()
    assert get_streaming_text_frontend_factory("zh_en_special_v1") is create_zh_en_special_v1


def test_a_registered_factory_is_found_by_its_name() -> None:
    """IO-INV-102: a new profile is a new name."""
    register_streaming_text_frontend("mine_v1", create_zh_en_special_v1)
    assert registered_profiles()[-1] == "mine_v1"
    factory = get_streaming_text_frontend_factory("mine_v1")
    assert factory(language="Chinese", max_pending_characters=5).feed("12") == []


def test_an_unknown_profile_is_refused() -> None:
    """IO-INV-102: nothing stands in for a profile that is not there."""
    with pytest.raises(ValueError, match=r"unknown commitment profile 'none'; known are: .*v1"):
        get_streaming_text_frontend_factory("none")


def test_a_duplicate_name_is_refused() -> None:
    """IO-INV-102: what a name means is never changed silently."""
    with pytest.raises(ValueError, match="'zh_en_special_v1' is registered already"):
        register_streaming_text_frontend("zh_en_special_v1", create_zh_en_special_v1)


def test_an_empty_name_is_refused() -> None:
    """IO-INV-102: a profile has a name."""
    with pytest.raises(ValueError, match="needs a name"):
        register_streaming_text_frontend("", create_zh_en_special_v1)


def test_extension_modules_register_when_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IO-INV-102: others bring their own profiles by naming a module."""
    (tmp_path / "weir_test_extension.py").write_text(
        "from services.edge.text.commitment import create_zh_en_special_v1\n"
        "from services.edge.text.registry import register_streaming_text_frontend\n"
        "register_streaming_text_frontend('extension_v1', create_zh_en_special_v1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import_frontend_modules(("weir_test_extension",))
    assert "extension_v1" in registered_profiles()
    import_frontend_modules(("weir_test_extension",))  # naming it twice is harmless
    del sys.modules["weir_test_extension"]


BROKEN_MODULES = [
    ("weir_test_missing", None, "'weir_test_missing' cannot be imported: ModuleNotFoundError"),
    ("weir_test_broken", "1 / 0", "'weir_test_broken' cannot be imported: ZeroDivisionError"),
    ("", None, "not an absolute module name: ''"),
    (".relative", None, "not an absolute module name: '.relative'"),
]


@pytest.mark.parametrize(("name", "source", "message"), BROKEN_MODULES)
def test_a_module_that_cannot_be_imported_is_named(
    name: str, source: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IO-INV-102: a missing frontend is found at start-up, not in a session."""
    if source is not None:
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=message):
        import_frontend_modules((name,))
