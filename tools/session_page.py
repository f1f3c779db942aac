"""A page of a session's states, drawn from its transition table.

Owns: the form of such a page, and the command line that prints, writes and checks one. Does not
own: the tables, nor the sentences about states, events and handlers (`draw_session`,
`draw_video_session`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

from services.edge.session_events import Table

State = TypeVar("State", bound=Enum)


@dataclass(frozen=True)
class SessionPage(Generic[State]):
    """What a page is drawn from. `head` stands above the diagram; the last state is the end."""

    head: tuple[str, ...]
    table: Table[State]
    states: Mapping[State, str]
    events: Mapping[type, str]
    handlers: Mapping[str, str]

    @property
    def closed(self) -> State:
        """The state in which everything has ended."""
        return list(self.states)[-1]

    def edges(self) -> dict[tuple[State, State], list[str]]:
        """Return the labels of every way from one state to another, in the order of the table."""
        found: dict[tuple[State, State], list[str]] = {}
        for (state, event), transition in self.table.items():
            for target in self.states:
                if target in transition.targets:
                    found.setdefault((state, target), []).append(self.events[event].strip("`"))
        return found

    def diagram(self) -> list[str]:
        """Return the Mermaid lines of the state diagram."""
        order = list(self.states)
        edges = sorted(
            self.edges().items(), key=lambda e: (order.index(e[0][0]), order.index(e[0][1]))
        )
        lines = ["stateDiagram-v2", f"    [*] --> {order[0].value}"]
        for (state, target), labels in edges:
            lines.append(f"    {state.value} --> {target.value}: {', '.join(labels)}")
        lines.append(f"    {self.closed.value} --> [*]")
        return lines

    def rows(self) -> list[str]:
        """Return the lines of the table: one row an event, one column a state."""
        columns = [state for state in self.states if state is not self.closed]
        lines = [
            "| event | " + " | ".join(state.value for state in columns) + " |",
            "|---" * (len(columns) + 1) + "|",
        ]
        for event, label in self.events.items():
            cells = [self._cell(state, event) for state in columns]
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        return lines

    def _cell(self, state: State, event: type) -> str:
        transition = self.table[state, event]
        targets = [target.value for target in self.states if target in transition.targets]
        done = self.handlers[transition.handler]
        return f"{done} → {', '.join(targets)}" if targets else done

    def text(self) -> str:
        """Return the whole page."""
        lines = [
            *self.head,
            "",
            "```mermaid",
            *self.diagram(),
            "```",
            "",
            "| state | meaning |",
            "|---|---|",
            *(f"| {state.value} | {meaning} |" for state, meaning in self.states.items()),
            "",
            "After an arrow stand the states that the event may lead to; otherwise it never leaves "
            "its",
            f"state. In the state {self.closed.value} every event is taken and causes nothing.",
            "",
            *self.rows(),
        ]
        return "\n".join(lines) + "\n"


def run(drawn: str, page: Path, root: Path, description: str, argv: list[str] | None) -> int:
    """Print, write or check the page; return the exit status."""
    parser = argparse.ArgumentParser(description=description)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="compare only, exit 1 on drift")
    choice.add_argument("--write", action="store_true", help="write the page")
    arguments = parser.parse_args(argv)
    if arguments.check:
        if page.exists() and page.read_text(encoding="utf-8") == drawn:
            return 0
        print(f"drift: {page.relative_to(root)}; run with --write", file=sys.stderr)
        return 1
    if arguments.write:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(drawn, encoding="utf-8")
        return 0
    print(drawn, end="")
    return 0
