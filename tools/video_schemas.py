"""Generate the JSON Schemas of the video endpoint's messages.

Owns: `contracts/schemas/video.*.schema.json`, which are never edited by hand. Does not own: the
messages (`services.edge.video.messages`), whose fields, ranges and docstrings are all there is to
a schema, nor the form of a file (`message_schemas`).
Run `python -m tools.video_schemas` to list the files, `--write` to write them, `--check` to
compare with what is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from services.edge.video.messages import (
    CLIENT_MESSAGES,
    SERVER_MESSAGES,
    InteractionBody,
    SessionInteraction,
)
from tools import message_schemas
from tools.message_schemas import definitions, message_type, schema, text_of

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "contracts" / "schemas"
PATTERN = "video.*.schema.json"

__all__ = ["documents", "drift", "file_name", "main", "message_type"]


def file_name(struct: type[msgspec.Struct]) -> str:
    """Return the name of the file that holds a message's schema."""
    return f"video.{message_type(struct)}.schema.json"


def documents() -> dict[str, str]:
    """Return every file's name and content."""
    senders = {"client": CLIENT_MESSAGES, "server": SERVER_MESSAGES}
    return {
        file_name(struct): text_of(_document(struct, sender))
        for sender, structs in senders.items()
        for struct in structs
    }


def _document(struct: type[msgspec.Struct], sender: str) -> dict[str, Any]:
    document = schema(struct, sender, file_name(struct))
    if struct is SessionInteraction:
        # The session reads the body itself, so that its errors can name the interaction.
        body = definitions(InteractionBody)
        document["$defs"] = body
        document["properties"]["interaction"] = {"$ref": f"#/$defs/{InteractionBody.__name__}"}
    return document


def drift() -> list[str]:
    """Return the names of files that are missing, different, or of no message."""
    return message_schemas.drift(documents(), FOLDER, PATTERN)


def main(argv: list[str] | None = None) -> int:
    """List, write or check the schemas; return the exit status."""
    description = "Generate the schemas of the video messages."
    return message_schemas.run(documents, FOLDER, PATTERN, description, argv)


if __name__ == "__main__":
    sys.exit(main())
