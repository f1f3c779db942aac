"""The adapter that the how-to page shows, taken from the page and held to the whole suite."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import pytest

from services.tts.adapters.base import VoiceAdapter
from tests.conformance.adapters import suite
from tests.conformance.adapters.cases import registered
from tests.docs.pages import code_blocks
from tests.processes import ROOT

PAGE = ROOT / "docs" / "how-to" / "add-a-voice-adapter.md"
CHECKS = [
    suite.check_capabilities,
    suite.check_commitment,
    suite.check_audible,
    suite.check_voices,
    suite.check_speed,
    suite.check_seed,
    suite.check_soundless,
    suite.check_odd,
    suite.check_long,
    suite.check_word_times,
    suite.check_cancellation,
    suite.check_concurrency,
]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[[], VoiceAdapter]:
    """Make the page's adapter by the name that the page gives it."""
    module = types.ModuleType("humming")
    source = next(b.text for b in code_blocks(PAGE) if "class HummingAdapter" in b.text)
    exec(compile(source, str(PAGE), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "humming", module)
    return lambda: registered("humming:HummingAdapter")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_adapter_of_the_page_passes(
    make: Callable[[], VoiceAdapter], check: Callable[[VoiceAdapter], None]
) -> None:
    """WEIR-386: what the page shows is a whole adapter."""
    adapter = make()
    adapter.load()
    check(adapter)
    adapter.close()


def test_the_adapter_of_the_page_loads_and_closes(make: Callable[[], VoiceAdapter]) -> None:
    """WEIR-335: in any order."""
    suite.check_life(make(), make())


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        ("astype(np.float32)", suite.check_audible),
        ("/ utterance.speed", suite.check_speed),
        ("_ = self.capabilities", None),
        ("tuple(times)", suite.check_word_times),
    ],
)
def test_the_suite_finds_an_adapter_that_breaks_its_promise(
    monkeypatch: pytest.MonkeyPatch, broken: str, check: Callable[[VoiceAdapter], None] | None
) -> None:
    """WEIR-330: checks that pass anything would prove nothing."""
    replacement = {
        "astype(np.float32)": "astype(np.float64)",
        "/ utterance.speed": "",
        "_ = self.capabilities": "pass",
        "tuple(times)": "tuple(times[1:])",
    }[broken]
    module = types.ModuleType("humming")
    source = next(b.text for b in code_blocks(PAGE) if "class HummingAdapter" in b.text)
    assert broken in source
    exec(compile(source.replace(broken, replacement), str(PAGE), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "humming", module)
    adapter = registered("humming:HummingAdapter")
    if check is None:
        with pytest.raises(pytest.fail.Exception):
            suite.check_life(adapter, registered("humming:HummingAdapter"))
        return
    adapter.load()
    with pytest.raises(AssertionError):
        check(adapter)
