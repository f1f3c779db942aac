"""Generate the JSON Schemas of the speech endpoint's messages.

Owns: `contracts/schemas/speech.*.schema.json`, which are never edited by hand. Does not own: the
messages (`services.edge.speech.messages`), whose fields, ranges and docstrings are all there is to
a schema.
Run `python -m tools.speech_schemas` to list the files, `--write` to write them, `--check` to
compare with what is committed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from services.edge.speech.messages import CLIENT_MESSAGES, SERVER_MESSAGES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "contracts" / "schemas"
PATTERN = "speech.*.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def message_type(struct: type[msgspec.Struct]) -> str:
    """Return the `type` of a message, `input.text` for one."""
    return str(struct.__struct_config__.tag)


def file_name(struct: type[msgspec.Struct]) -> str:
    """Return the name of the file that holds a message's schema."""
    return f"speech.{message_type(struct)}.schema.json"


def schema(struct: type[msgspec.Struct], sender: str) -> dict[str, Any]:
    """Return the schema of one message; `sender` is client or server."""
    _, components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    for component in components.values():
        # IO-INV-300: unknown keys are ignored by the server, and new ones may come from it.
        component["additionalProperties"] = True
        component["description"] = " ".join(component["description"].split())
    message = components.pop(struct.__name__)
    document: dict[str, Any] = {
        "$schema": DIALECT,
        "$id": file_name(struct),
        **message,
        "title": message_type(struct),
        "description": f"Sent by the {sender}. {message['description']}",
    }
    if components:
        document["$defs"] = components
    return document


def documents() -> dict[str, str]:
    """Return every file's name and content."""
    senders = {"client": CLIENT_MESSAGES, "server": SERVER_MESSAGES}
    return {
        file_name(struct): json.dumps(schema(struct, sender), indent=2, ensure_ascii=False) + "\n"
        for sender, structs in senders.items()
        for struct in structs
    }


def drift() -> list[str]:
    """Return the names of files that are missing, different, or of no message."""
    drawn = documents()
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob(PATTERN)}
    return sorted(
        name for name in drawn.keys() | committed.keys() if drawn.get(name) != committed.get(name)
    )


def main(argv: list[str] | None = None) -> int:
    """List, write or check the schemas; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate the schemas of the speech messages.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="compare only, exit 1 on drift")
    choice.add_argument("--write", action="store_true", help="write the schemas")
    arguments = parser.parse_args(argv)
    if arguments.write:
        drawn = documents()
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in drift():
            if name in drawn:
                (FOLDER / name).write_text(drawn[name], encoding="utf-8")
            else:
                (FOLDER / name).unlink()
        return 0
    if arguments.check:
        for name in drift():
            print(f"drift: {name}; run with --write", file=sys.stderr)
        return 1 if drift() else 0
    print("\n".join(documents()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
