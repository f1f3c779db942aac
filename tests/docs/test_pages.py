"""What the pages say can be followed: links lead somewhere, code is code, commands exist."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import anchors, code_blocks, links, name, pages, slug
from tests.processes import ROOT

PAGES = pages()
TARGETS = set(re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def broken_links(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page that lead nowhere below `root`."""
    found = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = target.is_relative_to(root) and target.exists()
        if not inside or (fragment and fragment not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """WEIR-386: a link inside the repository has a target, its fragment included."""
    assert broken_links(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """WEIR-386: the check above can fail."""
    page = tmp_path / "page.md"
    page.write_text("# A title\n\n[a](#a-title) [b](#another) [c](gone.md)\n", encoding="utf-8")
    assert broken_links(page, tmp_path) == ["#another", "gone.md"]


def test_a_fragment_is_what_code_hosts_make_of_a_heading() -> None:
    """WEIR-386: lower case, punctuation dropped, white space to hyphens."""
    assert slug("WebSocket `/v1/audio`: rules, 2") == "websocket-v1audio-rules-2"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_is_code(page: Path) -> None:
    """WEIR-386: blocks marked python compile, blocks marked json parse."""
    for block in code_blocks(page):
        where = f"{name(page)}:{block.line}"
        if block.language == "python":
            ast.parse(block.text, where)
        elif block.language == "json":
            json.loads(block.text)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_names_its_language(page: Path) -> None:
    """WEIR-386: a block without a language would escape the checks."""
    assert [block.line for block in code_blocks(page) if not block.language] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_make_command_is_a_target(page: Path) -> None:
    """WEIR-386: what a page tells to run is there to be run."""
    shell = "\n".join(block.text for block in code_blocks(page) if block.language == "sh")
    inline = "\n".join(re.findall(r"`(make [^`]+)`", page.read_text("utf-8")))
    for command in re.findall(r"^make ([^#\n]*)", f"{shell}\n{inline}", re.MULTILINE):
        for word in command.split():
            assert "=" in word or word in TARGETS, f"make {word}"


def test_every_page_is_reached_from_the_index() -> None:
    """WEIR-386: no page of docs can only be found by its name."""
    index = ROOT / "docs" / "index.md"
    reached, waiting = set[Path](), [index]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
        waiting += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert sorted(name(page) for page in (ROOT / "docs").rglob("*.md") if page not in reached) == []
