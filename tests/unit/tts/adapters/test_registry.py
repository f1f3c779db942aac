"""Finding an adapter by name: what is accepted, and what an unknown name is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from services.tts.adapters.registry import ADAPTERS, UnknownAdapterError, resolve_adapter
from services.tts.adapters.settings import AdapterSettings
from services.tts.adapters.tone import ToneAdapter


def test_a_registered_name_gives_its_class() -> None:
    """WEIR-310: the registry is explicit."""
    assert resolve_adapter("tone") is ToneAdapter


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_registered_adapter_can_be_made_before_anything_is_loaded(name: str) -> None:
    """WEIR-310: a constructor is cheap; it needs no model file and no weights."""
    adapter = resolve_adapter(name)(AdapterSettings())
    assert adapter.concurrency >= 1


def test_module_and_class_give_an_adapter_that_is_not_registered() -> None:
    """WEIR-310: others bring their own without touching the registry."""
    assert resolve_adapter("services.tts.adapters.tone:ToneAdapter") is ToneAdapter


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nope", "known: embedded, tone"),
        ("", "known: embedded, tone"),
        ("Tone", "known: embedded, tone"),
        (":Class", "known: embedded, tone"),
        ("module:", "known: embedded, tone"),
        ("services.tts.adapters.nope:Class", "no module services.tts.adapters.nope"),
        ("nope.at.all:Class", "no module nope.at.all"),
        ("services.tts.adapters.tone:Nope", "has no Nope"),
        ("services.tts.adapters.tone:AMPLITUDE", "has no AMPLITUDE"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_clear_error(name: str, told: str) -> None:
    """WEIR-310: the error names what is known; there is no default."""
    with pytest.raises(UnknownAdapterError, match=told):
        resolve_adapter(name)


def test_a_fault_inside_an_adapter_module_is_not_hidden(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEIR-310: a missing dependency of an adapter is not reported as a missing adapter."""
    folder = tmp_path_factory.mktemp("adapters")
    (folder / "broken_adapter.py").write_text("import no_such_model_library\n", "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(ModuleNotFoundError, match="no_such_model_library"):
        resolve_adapter("broken_adapter:Adapter")


def test_finding_and_making_the_tone_adapter_imports_no_model_library() -> None:
    """WEIR-310: a name that is not asked for costs nothing; tone needs numpy alone."""
    script = (
        "import sys\n"
        "from services.tts.adapters.registry import resolve_adapter\n"
        "from services.tts.adapters.settings import AdapterSettings\n"
        "resolve_adapter('tone')(AdapterSettings()).load()\n"
        "heavy = {'onnxruntime', 'onnx', 'hibari', 'misaki', 'jieba', 'wetext', 'scipy', 'torch'}\n"
        "print(sorted(heavy & set(sys.modules)), 'numpy' in sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[] True"
