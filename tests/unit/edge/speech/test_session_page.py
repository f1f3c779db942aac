"""The page of the session's states, drawn from its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.edge.speech.transitions import TRANSITIONS
from tools import draw_session


def test_the_page_is_drawn_from_the_table() -> None:
    """WEIR-153: the documented states are those of the code."""
    assert draw_session.main(["--check"]) == 0
    lines = draw_session.diagram()
    assert "    unconfigured --> ready: session.config" in lines
    assert "    ready --> receiving: input.text" in lines
    assert (
        "    finishing --> ready: input.cancel, update of a segment, failure of a segment" in lines
    )
    for (state, event), transition in TRANSITIONS.items():
        label = draw_session.EVENTS[event].strip("`")
        for target in transition.targets:
            start = f"    {state.value} --> {target.value}: "
            assert any(line.startswith(start) and label in line for line in lines)


def test_every_sentence_is_needed() -> None:
    """WEIR-153: the page tells of each handler and each event, and of nothing else."""
    assert set(draw_session.HANDLERS) == {t.handler for t in TRANSITIONS.values()}
    assert set(draw_session.EVENTS) == {event for _, event in TRANSITIONS}
    assert len(draw_session.rows()) == 2 + len(draw_session.EVENTS)


def test_drift_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """WEIR-153: a page that says something else fails the check, and writing mends it."""
    monkeypatch.setattr(draw_session, "ROOT", tmp_path)
    monkeypatch.setattr(draw_session, "PAGE", tmp_path / "reference" / "session.md")
    assert draw_session.main(["--check"]) == 1
    assert draw_session.main(["--write"]) == 0
    assert draw_session.main(["--check"]) == 0
    draw_session.PAGE.write_text("something else", encoding="utf-8")
    assert draw_session.main(["--check"]) == 1
    assert "drift" in capsys.readouterr().err
    assert draw_session.main([]) == 0
    assert capsys.readouterr().out == draw_session.page()
