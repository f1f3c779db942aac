"""The body of an interaction, read so that an error can name the interaction it belongs to.

Owns: the syntax of `interaction`, and the id of one that has none. Does not own: idempotency, the
queue and the timeline (the video service has them), when interactions are taken (`core`). Enforces:
WEIR-164 (an interaction that is refused is refused whole, correlated where its id can be read, and
never passed on).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contracts.errors import Failure, Reason, failure
from contracts.generation import Interaction
from contracts.video import MAX_EVENT_ID_CHARACTERS
from services.edge.frames import field_failure, reported_keys
from services.edge.video.messages import MAX_TRANSITION_CHUNKS, InteractionBody
from services.edge.video.negotiation import prompt_expected
from services.edge.video.open_fields import open_fields_failure
from services.edge.video.terms import VideoTerms

MESSAGE = "session.interaction"


@dataclass(frozen=True, slots=True)
class RefusedInteraction:
    """Why an interaction is not passed on. `event_id` None: it has none that could be read."""

    event_id: str | None
    failure: Failure


def event_id_of(body: dict[str, Any]) -> str | None:
    """Return the id of an interaction, None when it has none or one that is none."""
    event_id = body.get("event_id")
    if isinstance(event_id, str) and 1 <= len(event_id) <= MAX_EVENT_ID_CHARACTERS:
        return event_id
    return None


def read_interaction(body: dict[str, Any], terms: VideoTerms) -> Interaction | RefusedInteraction:
    """Return what an interaction asks for; one without an id gets one from `terms.make_id`."""
    event_id = event_id_of(body)
    chunks = _transition_chunks(body.get("transition_chunks"))
    refusal = _refusal(body, event_id, chunks, terms)
    if refusal is not None:
        # WEIR-164
        return RefusedInteraction(event_id, refusal)
    event = body["event"]
    return Interaction(
        event_id or terms.make_id(),
        event["prompt"],
        None if isinstance(chunks, Failure) else chunks,
        {name: value for name, value in event.items() if name != "prompt"},
    )


def _refusal(
    body: dict[str, Any], event_id: str | None, chunks: int | Failure | None, terms: VideoTerms
) -> Failure | None:
    if event_id is None and body.get("event_id") is not None:
        return field_failure(
            MESSAGE,
            "interaction.event_id",
            f"a string of 1 to {MAX_EVENT_ID_CHARACTERS} characters",
        )
    event = body.get("event")
    if not isinstance(event, dict):
        return field_failure(MESSAGE, "interaction.event", "an object")
    prompt, limit = event.get("prompt"), terms.limits.prompt_characters
    if not isinstance(prompt, str) or not prompt.strip() or len(prompt) > limit:
        return field_failure(MESSAGE, "interaction.event.prompt", prompt_expected(limit))
    if isinstance(chunks, Failure):
        return chunks
    unknown = [key for key in body if key not in InteractionBody.__struct_fields__]
    if terms.strict and unknown:
        return failure(Reason.UNSUPPORTED_OPTION, "; ".join(reported_keys("interaction", unknown)))
    return open_fields_failure(MESSAGE, "interaction.event", event)


def _transition_chunks(value: object) -> int | Failure | None:
    """Return the count; 3.0 is 3 and null is absent. Truth values are no numbers here."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, int) and whole and 0 <= value <= MAX_TRANSITION_CHUNKS:
        return value
    return field_failure(
        MESSAGE, "interaction.transition_chunks", f"a whole number, 0 to {MAX_TRANSITION_CHUNKS}"
    )
