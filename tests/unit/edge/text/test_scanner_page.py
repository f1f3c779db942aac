"""The scanner's transition table, and the page drawn from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.edge.text.zh_en_special_v1.scanner import (
    _SCAN_TRANSITIONS,
    _STEPS,
    ScanState,
    _starting_event,
)
from tools import draw_scanner

EDGES = {
    ("SCAN", "natural_found", "NATURAL"),
    ("SCAN", "lexical_found", "LEXICAL"),
    ("SCAN", "special_found", "SPECIAL"),
    ("SCAN", "text_exhausted", "DONE"),
    ("NATURAL", "advanced", "SCAN"),
    ("NATURAL", "left_incomplete", "HOLD"),
    ("LEXICAL", "closed", "READY"),
    ("LEXICAL", "left_incomplete", "HOLD"),
    ("SPECIAL", "closed", "READY"),
    ("SPECIAL", "left_incomplete", "HOLD"),
    ("READY", "released", "SCAN"),
}


def test_the_transition_table() -> None:
    """IO-INV-102: only READY releases atoms; HOLD and DONE end the scan."""
    table = {(str(s), str(e), str(t)) for (s, e), t in _SCAN_TRANSITIONS.items()}
    assert table == EDGES
    assert {str(state) for state in ScanState} == {state for edge in EDGES for state in edge[::2]}


def test_every_state_but_the_last_two_has_a_step() -> None:
    """IO-INV-102: the walk ends in HOLD or DONE and nowhere else."""
    assert set(ScanState) - set(_STEPS) == {ScanState.HOLD, ScanState.DONE}
    assert {state for state, _ in _SCAN_TRANSITIONS} == set(_STEPS)


STARTS = [
    ("a", 0, "lexical_found"),
    ("5", 0, "special_found"),
    ("-", 0, "special_found"),
    ("中", 0, "natural_found"),
    (".5", 0, "special_found"),
    ("．5", 0, "special_found"),
    (".a", 0, "natural_found"),
    (".", 0, "natural_found"),
    ("..5", 1, "natural_found"),
    (".．5", 1, "special_found"),
    ("．.5", 1, "special_found"),
    ("!.5", 1, "special_found"),
]


@pytest.mark.parametrize(("text", "index", "event"), STARTS)
def test_what_leaves_the_first_state(text: str, index: int, event: str) -> None:
    """IO-INV-102: what a character starts is told by it and its two neighbours."""
    assert _starting_event(text, index) == event


def test_the_page_is_drawn_from_the_table() -> None:
    """IO-INV-102: the documented states are those of the code."""
    assert draw_scanner.main(["--check"]) == 0
    for state, event, target in EDGES:
        assert f"    {state} --> {target}: {event}" in draw_scanner.diagram()


def test_drift_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """IO-INV-102: a page that says something else fails the check, and writing mends it."""
    monkeypatch.setattr(draw_scanner, "ROOT", tmp_path)
    monkeypatch.setattr(draw_scanner, "PAGE", tmp_path / "reference" / "scanner.md")
    assert draw_scanner.main(["--check"]) == 1
    assert draw_scanner.main(["--write"]) == 0
    assert draw_scanner.main(["--check"]) == 0
    draw_scanner.PAGE.write_text("something else", encoding="utf-8")
    assert draw_scanner.main(["--check"]) == 1
    assert "drift" in capsys.readouterr().err
    assert draw_scanner.main([]) == 0
    assert capsys.readouterr().out == draw_scanner.page()
