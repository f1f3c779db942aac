"""The voice adapters that the suite holds to the protocol. A later adapter joins with one line."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.tts.adapters.base import VoiceAdapter
from services.tts.adapters.registry import resolve_adapter
from services.tts.adapters.settings import AdapterSettings
from services.tts.models.manifest import DEFAULT_GROUPS, WITHOUT, Group, assets_of
from services.tts.models.store import ModelStore
from tests.processes import ROOT

MODEL_DIR = ROOT / ".models"
EMBEDDED_PACKAGES = ("onnxruntime", "onnx", "hibari", "misaki", "jieba", "pypinyin", "wetext")


@dataclass(frozen=True, slots=True)
class AdapterCase:
    """One adapter as the suite sees it.

    `make` returns a fresh adapter, not loaded. `lacking` says why it cannot be loaded here, None
    when it can. `slow` ones are left out of the fast tests.
    """

    name: str
    make: Callable[[], VoiceAdapter]
    lacking: Callable[[], str | None] = lambda: None
    slow: bool = False

    @property
    def parameter(self) -> object:
        """The case as a pytest parameter, with its mark."""
        marks = [pytest.mark.slow] if self.slow else []
        return pytest.param(self, id=self.name, marks=marks)

    def skip_unless_possible(self) -> None:
        """Skip the test, saying what is lacking."""
        if (problem := self.lacking()) is not None:
            pytest.skip(f"adapter {self.name}: {problem}")


def packages_lacking(names: tuple[str, ...]) -> str | None:
    """Say which packages are not installed."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def files_lacking(groups: tuple[Group, ...]) -> str | None:
    """Say which groups of model files are incomplete."""
    store = ModelStore(MODEL_DIR)
    absent = [group for group in groups if store.missing(assets_of((group,)))]
    if not absent:
        return None
    names = " ".join(group.value for group in absent)
    return f"run `python -m services.tts.models fetch {names}` ({WITHOUT[absent[0]]})"


def embedded_lacking() -> str | None:
    """Say what the whole embedded adapter needs and does not have here."""
    return packages_lacking(EMBEDDED_PACKAGES) or files_lacking(DEFAULT_GROUPS)


def registered(name: str, model_dir: Path = MODEL_DIR, **options: str) -> VoiceAdapter:
    """Make a registered adapter with two places for utterances."""
    return resolve_adapter(name)(AdapterSettings(model_dir, concurrency=2, options=options))


CASES = (
    AdapterCase("tone", lambda: registered("tone")),
    AdapterCase("tone, stretched by the engine", lambda: registered("tone", native_speed="0")),
    AdapterCase("embedded", lambda: registered("embedded"), embedded_lacking, slow=True),
)
