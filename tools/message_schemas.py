"""JSON Schemas made from the records of an endpoint's messages.

Owns: the form of a schema file, and the command line that lists, writes and checks them. Does not
own: the messages, or which endpoint they belong to (`speech_schemas`, `video_schemas`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def message_type(struct: type[msgspec.Struct]) -> str:
    """Return the `type` of a message, `input.text` for one."""
    return str(struct.__struct_config__.tag)


def schema(struct: type[msgspec.Struct], sender: str, name: str) -> dict[str, Any]:
    """Return the schema of one message in the file `name`; `sender` is client or server."""
    components = definitions(struct)
    message = components.pop(struct.__name__)
    document: dict[str, Any] = {
        "$schema": DIALECT,
        "$id": name,
        **message,
        "title": message_type(struct),
        "description": f"Sent by the {sender}. {message['description']}",
    }
    if components:
        document["$defs"] = components
    return document


def definitions(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schemas of a record and of all records within it, by name."""
    _, components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    for component in components.values():
        # IO-INV-300: unknown keys are ignored by the server, and new ones may come from it.
        component.setdefault("additionalProperties", True)
        component["description"] = " ".join(component["description"].split())
    return components


def text_of(document: dict[str, Any]) -> str:
    """Return the content of a schema file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def drift(drawn: dict[str, str], folder: Path, pattern: str) -> list[str]:
    """Return the names of files that are missing, different, or of no message."""
    committed = {path.name: path.read_text(encoding="utf-8") for path in folder.glob(pattern)}
    return sorted(
        name for name in drawn.keys() | committed.keys() if drawn.get(name) != committed.get(name)
    )


def run(
    documents: Callable[[], dict[str, str]],
    folder: Path,
    pattern: str,
    description: str,
    argv: list[str] | None,
) -> int:
    """List, write or check the schemas; return the exit status."""
    parser = argparse.ArgumentParser(description=description)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="compare only, exit 1 on drift")
    choice.add_argument("--write", action="store_true", help="write the schemas")
    arguments = parser.parse_args(argv)
    drawn = documents()
    differing = drift(drawn, folder, pattern)
    if arguments.write:
        folder.mkdir(parents=True, exist_ok=True)
        for name in differing:
            if name in drawn:
                (folder / name).write_text(drawn[name], encoding="utf-8")
            else:
                (folder / name).unlink()
        return 0
    if arguments.check:
        for name in differing:
            print(f"drift: {name}; run with --write", file=sys.stderr)
        return 1 if differing else 0
    print("\n".join(drawn))
    return 0
