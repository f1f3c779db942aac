"""The invariant documents, the code and the tests agree on which rules there are."""

from __future__ import annotations

import re

import pytest

from tests.contracts.invariants import (
    FOLDER,
    ID,
    INDEX,
    ROOT,
    Citation,
    Rule,
    citations,
    exists,
    index,
    registered,
    rules,
)

RULES = {rule.id: rule for rule in rules()}
RANGES = {
    range(1, 100): "frame",
    range(100, 200): "requests",
    range(200, 300): "failures",
    range(300, 400): "compatibility",
}
GIVEN = ("IO-INV-001", "IO-INV-100", "IO-INV-101", "IO-INV-102", "IO-INV-103", "IO-INV-300")

every_rule = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)


def cited(places: tuple[Citation, ...]) -> dict[str, list[Citation]]:
    """Sort citations by the rule they name."""
    by_id: dict[str, list[Citation]] = {}
    for place in places:
        by_id.setdefault(place.id, []).append(place)
    return by_id


def test_every_id_that_is_cited_is_documented() -> None:
    """WEIR-004: code and tests name no rule that nobody wrote down."""
    code, tests = citations()
    unknown = {c.id: f"{c.file}:{c.line}" for c in (*code, *tests) if c.id not in RULES}
    assert not unknown


@every_rule
def test_a_rule_is_enforced_by_code_and_held_by_a_test(rule: Rule) -> None:
    """WEIR-004: a rule that is not proposed has at least one of each, and they name it."""
    code, tests = map(cited, citations())
    if rule.proposed:
        return  # the index says so, which a test below compares
    assert rule.id in tests
    # A Dockerfile, a Makefile or a table is named without naming the rule.
    assert rule.id in code or not any(".py" in reference for reference in rule.code)


@every_rule
def test_the_references_of_a_rule_are_there(rule: Rule) -> None:
    """WEIR-004: file and definition exist, and the file of a test is one of the tests."""
    for reference in (*rule.code, *rule.tests):
        assert exists(reference), f"{rule.id} refers to {reference}"
    assert all("tests/" in reference for reference in rule.tests)
    assert not any("tests/" in reference for reference in rule.code)


@every_rule
def test_the_references_of_a_rule_cite_it(rule: Rule) -> None:
    """WEIR-004: what is named as enforcing a rule says so itself."""
    code, tests = map(cited, citations())
    for references, places in ((rule.code, code), (rule.tests, tests)):
        there = {place.reference for place in places.get(rule.id, ())}
        there |= {place.file for place in places.get(rule.id, ())}
        for reference in references:
            if there:
                assert reference in there, f"{reference} does not cite {rule.id}"


@every_rule
def test_a_rule_says_what_must_be(rule: Rule) -> None:
    """WEIR-004: a heading and at least one sentence; those of the I/O contracts say MUST."""
    assert rule.text.endswith((".", ":"))
    if rule.id.startswith("IO-INV"):
        assert "MUST" in rule.text


def test_ids_are_unique_and_in_a_range() -> None:
    """WEIR-004: 001 to 399, each once."""
    headings = re.findall(
        r"^### ((?:IO-INV|WEIR)-\d+)",
        "\n".join(path.read_text() for path in FOLDER.glob("*.md")),
        re.MULTILINE,
    )
    assert len(headings) == len(set(headings)) == len(RULES)
    for heading in headings:
        number = int(heading.rpartition("-")[2])
        assert ID.fullmatch(heading)
        assert any(number in span for span in RANGES), heading


def test_the_registered_ids_are_those_of_the_documents() -> None:
    """WEIR-004: append-only, so no registered id may be missing and none may be unregistered."""
    ids = registered()
    assert len(ids) == len(set(ids))
    assert set(ids) == set(RULES)


def test_the_given_rules_are_documented() -> None:
    """WEIR-004: the ids that came with the requirement keep their numbers."""
    assert tuple(sorted(rule for rule in RULES if rule.startswith("IO-INV"))) == GIVEN


def test_the_index_lists_every_rule_with_its_state() -> None:
    """WEIR-004: `python -m tests.contracts.invariants` writes it."""
    assert INDEX.read_text().endswith(index())


def test_each_document_explains_itself_and_is_listed() -> None:
    """WEIR-004: a reader finds every document from the index, and the index from the README."""
    listed = INDEX.read_text()
    for path in FOLDER.glob("*.md"):
        assert path == INDEX or f"[{path.name}]({path.name})" in listed
    assert "(invariants/README.md)" in (ROOT / "contracts" / "README.md").read_text()


def test_a_reference_that_is_not_there_is_found() -> None:
    """WEIR-004: the checks above can fail."""
    assert exists("contracts/identity.py::SegmentIdentity.answers")
    assert exists("contracts/accumulation.py::TRANSITIONS")
    assert not exists("contracts/identity.py::SegmentIdentity.nothing")
    assert not exists("contracts/nothing.py")
