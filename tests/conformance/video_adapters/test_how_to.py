"""The adapter that the how-to page shows, taken from the page and held to the whole suite."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from services.video.adapters.base import VideoAdapter
from services.video.adapters.registry import resolve_adapter
from services.video.adapters.settings import AdapterSettings
from tests.conformance.video_adapters import suite
from tests.conformance.video_adapters.cases import AdapterCase
from tests.docs.pages import code_blocks
from tests.processes import ROOT

Adapter = VideoAdapter[Any, Any, Any]
Check = Callable[[Adapter], None]
Make = Callable[..., Adapter]

PAGE = ROOT / "docs" / "how-to" / "add-a-video-adapter.md"


def _shades(_: object) -> Adapter:
    return resolve_adapter("shades:ShadesAdapter")(AdapterSettings())


CASE = AdapterCase("shades", _shades, lambda state: np.array([state], np.float64))


def check_blend(adapter: Adapter) -> None:
    """The suite's check, with what a shade is in numbers."""
    suite.check_blend(adapter, CASE)


def check_refusals(adapter: Adapter) -> None:
    """The suite's check; shades have no parameters, so only undeclared ones are refused."""
    suite.check_refusals(adapter, CASE)


CHECKS: list[Check] = [
    suite.check_capabilities,
    suite.check_shapes,
    suite.check_length,
    suite.check_seed,
    suite.check_prompts,
    check_blend,
    suite.check_blended_frames,
    suite.check_stopping,
    suite.check_asking,
    suite.check_sessions,
    suite.check_memory,
    check_refusals,
    suite.check_picture,
]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make the page's adapter by the name that the page gives it, with some text replaced."""

    def made(replaced: str = "", replacement: str = "") -> Adapter:
        source = next(b.text for b in code_blocks(PAGE) if "class ShadesAdapter" in b.text)
        assert replaced in source
        module = types.ModuleType("shades")
        monkeypatch.setitem(sys.modules, "shades", module)
        text = source.replace(replaced, replacement) if replaced else source
        exec(compile(text, str(PAGE), "exec"), module.__dict__)
        return CASE.make(ROOT)

    return made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_adapter_of_the_page_passes(make: Make, check: Check) -> None:
    """WEIR-386: what the page shows is a whole adapter."""
    adapter = make()
    suite.check_unloaded(adapter)
    adapter.load()
    check(adapter)
    adapter.unload()


@pytest.mark.parametrize(
    ("replaced", "replacement", "check"),
    [
        ("astype(np.uint8)", "astype(np.float32)", suite.check_shapes),
        ("size=(12, 1", "size=(11, 1", suite.check_shapes),
        ("state.generation.seed % 2**64", "0", suite.check_seed),
        ("default_rng(seed)", "default_rng()", suite.check_seed),
        ("prompt + noise", "128 + noise", suite.check_prompts),
        ("(target - source) * progress", "(target - source)", check_blend),
        ("if should_stop():", "if should_stop() and False:", suite.check_stopping),
        ("        for _ in", "        state.chunks += 1\n        for _ in", suite.check_stopping),
        ("seed = [", "self.n = getattr(self, 'n', 0) + 1; seed = [self.n, ", suite.check_sessions),
        ("[*generation.options, *generation.extra_params]", "[]", check_refusals),
        (
            "        for _ in",
            "        state.generation.extra_params[state.chunks] = noise\n        for _ in",
            suite.check_memory,
        ),
    ],
)
def test_the_suite_finds_an_adapter_that_breaks_its_promise(
    make: Make, replaced: str, replacement: str, check: Check
) -> None:
    """WEIR-351: checks that pass anything would prove nothing."""
    adapter = make(replaced, replacement)
    adapter.load()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(adapter)
