"""The documentation as its tests read it: pages, their links, headings and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.processes import ROOT

_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One fenced block: its language, its text and the line it begins at, counted from 1."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """Every page of the repository: the root's, the contracts' and all of docs."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted(ROOT.glob("contracts/**/*.md")),
        *sorted(ROOT.glob("docs/**/*.md")),
    ]


def name(page: Path) -> str:
    """The page's path in the repository."""
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    """The targets of every link and picture."""
    return [
        str(token.attrs.get("href") or token.attrs.get("src"))
        for token in _inline(page)
        if token.type in ("link_open", "image")
    ]


def anchors(page: Path) -> set[str]:
    """The fragments that its headings can be linked with."""
    tokens = _MARKDOWN.parse(page.read_text("utf-8"))
    titles = [
        tokens[index + 1].content
        for index, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    return {slug(title) for title in titles}


def slug(title: str) -> str:
    """The fragment of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def code_blocks(page: Path) -> list[CodeBlock]:
    """Every fenced block."""
    return [
        CodeBlock(token.info.strip(), token.content, token.map[0] + 1 if token.map else 0)
        for token in _MARKDOWN.parse(page.read_text("utf-8"))
        if token.type == "fence"
    ]


def _inline(page: Path) -> Iterator[Token]:
    for token in _MARKDOWN.parse(page.read_text("utf-8")):
        yield from token.children or ()
