"""The golden vectors of `zh_en_special_v1`: data that any implementation can be held against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.edge.text.commitment import CommitmentTextFrontend
from services.edge.text.frontend import Segment
from services.edge.text.policy import CommitmentPolicy

ROOT = Path(__file__).resolve().parents[4]
VECTORS = json.loads(
    (ROOT / "contracts/vectors/commitment/zh_en_special_v1.json").read_text(encoding="utf-8")
)
PAGE = (ROOT / "docs/topics/commitment.md").read_text(encoding="utf-8")


def observed(speaking: CommitmentTextFrontend, segments: list[Segment]) -> dict[str, Any]:
    """What a call did, in the words of the vectors."""
    explained = speaking.explain()
    return {
        "released": [
            {"text": span.source_text, "kind": span.kind, "boundary_after": span.boundary_after}
            for span in explained.spans
        ],
        "pending": explained.pending,
        "segments": [
            {
                "text": segment.text,
                "source_start": segment.source_start,
                "source_end": segment.source_end,
                "reason": segment.reason,
            }
            for segment in segments
        ],
    }


def named(vectors: list[dict[str, Any]]) -> list[Any]:
    """The vectors as parameters that carry their name."""
    return [pytest.param(vector, id=vector["name"]) for vector in vectors]


@pytest.mark.parametrize("vector", named(VECTORS["vectors"]))
def test_a_vector_is_reproduced_exactly(vector: dict[str, Any]) -> None:
    """IO-INV-102, IO-INV-103: spans, pending text and segments after every packet."""
    limit = vector.get("max_pending_characters", 4096)
    speaking = CommitmentTextFrontend(CommitmentPolicy(VECTORS["profile"], limit))
    for step in vector["steps"]:
        if "error" in step:
            with pytest.raises(ValueError, match="unresolved text"):
                speaking.feed(step["packet"])
            assert speaking.pending == step["pending"]
            return
        expected = {key: value for key, value in step.items() if key != "packet"}
        assert observed(speaking, speaking.feed(step["packet"])) == expected
    assert observed(speaking, speaking.finish()) == vector["finish"]


def shown(text: str) -> str:
    """A text in a table cell: invisible characters by their number."""
    named_ones = {"\n": "U+000A", "\ufe0f": "U+FE0F", "\u20e3": "U+20E3", "": "empty"}
    marks = [named_ones.get(c, c) for c in text] or ["empty"]
    return f"`{''.join(marks)}`" if text else marks[0]


def row(vector: dict[str, Any]) -> str:
    """The row of the documentation's table for a vector."""
    packets = " ".join(shown(step["packet"]) for step in vector["steps"])
    pending = " ".join(shown(step["pending"]) for step in vector["steps"])
    return f"| {packets} | {pending} |"


def test_the_documented_table_is_that_of_the_vectors() -> None:
    """IO-INV-102: every row of the page is a vector, in the same words."""
    table = PAGE.split("| packets | pending after each |\n|---|---|\n")[1].split("\n\n")[0]
    rows = {row(vector) for vector in VECTORS["vectors"] if vector["steps"]}
    assert len(table.splitlines()) > 10
    assert set(table.splitlines()) <= rows
