"""Reads the invariant documents and finds every citation of a rule.

Owns: the form of a rule in `contracts/invariants/*.md`, and the search for citations in code and
tests. Does not own: the checks (`test_invariants`).

`python -m tests.contracts.invariants` writes the reference lines and the index anew from the
citations that are there. The sentences of the rules are written by hand and kept, and so are
references of rules that nothing cites: a Dockerfile or a Makefile is its own citation.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "contracts" / "invariants"
INDEX = FOLDER / "README.md"
REGISTERED = FOLDER / "registered.txt"

ID = re.compile(r"\b(?:IO-INV|WEIR)-\d{3}\b")
RULE = re.compile(r"^### (?P<id>(?:IO-INV|WEIR)-\d{3}): (?P<title>.+)$")
REFERENCE = re.compile(r"`(?P<file>[\w./-]+)(?:::(?P<name>[\w.]+))?`")
CODE_FOLDERS = ("contracts", "protos", "services", "tools", "client", "deploy", "benchmarks")
CODE_FILES = ("Makefile", "docker-compose.yml", "pyproject.toml", "buf.yaml")
SUFFIXES = frozenset({".py", ".proto", ".yaml", ".yml", ".Dockerfile", ".toml", ".js"})
MOST_REFERENCES = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it stands in a document, with its references as `file::name`."""

    id: str
    title: str
    document: str
    text: str
    code: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def proposed(self) -> bool:
        """True while the document says that code or test is still to come."""
        return not self.code or not self.tests


@dataclass(frozen=True, slots=True)
class Citation:
    """One place that names a rule. `name` is the enclosing definition, empty at module level."""

    id: str
    file: str
    line: int
    name: str

    @property
    def reference(self) -> str:
        """The citation as a document writes it."""
        return f"{self.file}::{self.name}" if self.name else self.file


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule of every document, in the order of the documents."""
    found: list[Rule] = []
    for document in sorted(FOLDER.glob("*.md")):
        if document == INDEX:
            continue
        for section in re.split(r"^(?=### )", document.read_text(), flags=re.MULTILINE):
            heading, _, body = section.partition("\n")
            match = RULE.match(heading)
            if match is not None:
                body = re.split(r"^## ", body, maxsplit=1, flags=re.MULTILINE)[0]
                found.append(_rule(match, document.name, body))
    return tuple(found)


def _rule(heading: re.Match[str], document: str, body: str) -> Rule:
    lines = body.strip().splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("- Code: ", "- Tests: ")))
    return Rule(
        heading["id"],
        heading["title"],
        document,
        text.strip(),
        _references(lines, "- Code: "),
        _references(lines, "- Tests: "),
    )


def _references(lines: list[str], label: str) -> tuple[str, ...]:
    text = " ".join(line.removeprefix(label) for line in lines if line.startswith(label))
    return tuple(match[0].strip("`") for match in REFERENCE.finditer(text))


def registered() -> tuple[str, ...]:
    """Return the registered ids in the order in which they were registered."""
    lines = REGISTERED.read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def citations() -> tuple[tuple[Citation, ...], tuple[Citation, ...]]:
    """Return all citations in code, then all citations in tests."""
    code = [path for folder in CODE_FOLDERS for path in _files(ROOT / folder)]
    code += [ROOT / name for name in CODE_FILES if (ROOT / name).exists()]
    tests = [path for path in _files(ROOT / "tests") if path.parent.name != "vectors"]
    in_client = [path for path in code if "tests" in path.relative_to(ROOT).parts]
    code = [path for path in code if path not in in_client]
    return (
        tuple(c for path in code for c in _citations(path)),
        tuple(c for path in (*tests, *in_client) for c in _citations(path)),
    )


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        parts = path.relative_to(ROOT).parts
        if path.suffix in SUFFIXES and "gen" not in parts and "node_modules" not in parts:
            yield path


def _citations(path: Path) -> Iterator[Citation]:
    text = path.read_text()
    if not ID.search(text):
        return
    spans = list(_definitions(text)) if path.suffix == ".py" else []
    for number, line in enumerate(text.splitlines(), 1):
        for match in ID.finditer(line):
            name = next((name for name, first, last in spans if first <= number <= last), "")
            yield Citation(match[0], str(path.relative_to(ROOT)), number, name)


def _definitions(text: str) -> Iterator[tuple[str, int, int]]:
    """Give name, first and last line of every definition, inner ones before outer ones.

    A definition begins at the comments right above it.
    """
    lines = text.splitlines()

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            name = _name(child)
            if name is None:
                yield from walk(child, prefix)
                continue
            assert isinstance(child, ast.stmt)
            first, last = child.lineno, child.end_lineno or child.lineno
            while first > 1 and lines[first - 2].lstrip().startswith(("#", "@")):
                first -= 1
            if isinstance(child, ast.ClassDef):
                yield from walk(child, f"{prefix}{name}.")
            yield f"{prefix}{name}", first, last

    yield from walk(ast.parse(text), "")


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return next((target.id for target in targets if isinstance(target, ast.Name)), None)


def exists(reference: str) -> bool:
    """Tell whether the file of a reference is there and defines the name, if it has one."""
    file, _, name = reference.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    return not name or name in {found for found, _, _ in _definitions(path.read_text())}


def write() -> None:
    """Write the reference lines of every rule and the index from the citations that are there."""
    code, tests = citations()
    for document in sorted(FOLDER.glob("*.md")):
        if document != INDEX:
            _write_document(document, code, tests)
    rules.cache_clear()
    before = INDEX.read_text().split("| Id |")[0]
    INDEX.write_text(before + index())


def _write_document(
    document: Path, code: tuple[Citation, ...], tests: tuple[Citation, ...]
) -> None:
    written: list[str] = []
    rule = ""
    for line in document.read_text().splitlines():
        match = RULE.match(line)
        rule = match["id"] if match is not None else rule
        for label, found in (("- Code: ", code), ("- Tests: ", tests)):
            if line.startswith(label):
                line = label + (_listed(rule, found) or line.removeprefix(label))
        written.append(line)
    document.write_text("\n".join(written) + "\n")


def _listed(rule: str, found: tuple[Citation, ...]) -> str:
    """Return the first references, those to a definition before those to a whole file."""
    references = dict.fromkeys(c.reference for c in found if c.id == rule)
    ordered = sorted(references, key=lambda reference: "::" not in reference)
    defined = [reference for reference in ordered if "::" in reference]
    chosen = _spread(defined or ordered)
    return ", ".join(f"`{reference}`" for reference in chosen)


def _spread(references: list[str]) -> list[str]:
    """Choose at most `MOST_REFERENCES`, from as many files as there are."""
    by_file: dict[str, list[str]] = {}
    for reference in references:
        by_file.setdefault(reference.partition("::")[0], []).append(reference)
    chosen: list[str] = []
    while len(chosen) < MOST_REFERENCES and any(by_file.values()):
        for waiting in by_file.values():
            if waiting and len(chosen) < MOST_REFERENCES:
                chosen.append(waiting.pop(0))
    return sorted(chosen)


def index() -> str:
    """Return the index table: id, rule, state, in the order of the ids."""
    lines = ["| Id | Rule | State |", "|---|---|---|"]
    for rule in sorted(rules(), key=lambda rule: rule.id):
        anchor = re.sub(r"[^a-z0-9 -]", "", f"{rule.id}: {rule.title}".lower()).replace(" ", "-")
        state = "proposed" if rule.proposed else "enforced"
        lines.append(f"| [{rule.id}]({rule.document}#{anchor}) | {rule.title} | {state} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write()
    sys.exit(0)
