"""The golden vectors of the speech endpoint: reading them, and playing them to the pure session.

Owns: the form of the files in `contracts/vectors/speech`, which its README describes. Does not own:
the expectations, which are data. A run over sockets reads the same files: `conversation` is what a
client sees whatever adapter speaks.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from contracts.errors import Reason, failure
from contracts.modality import Accepted, AudioFormat, Outcome
from services.edge.speech.events import AbortSegment, Close, SegmentUpdated, StartSegment
from services.edge.speech.terms import SpeechLimits
from tests.unit.edge.speech.session_fixture import STANDARD, USAGE, Conversation, Shown

FOLDER = Path(__file__).resolve().parents[2] / "contracts" / "vectors" / "speech"
INDEPENDENT = (
    "type",
    "utterance_index",
    "sentence_index",
    "sentence_text",
    "segment_index",
    "source_start",
    "source_end",
    "format",
    "warnings",
    "error",
    "total_sentences",
    "code",
    "cause",
)
"""Fields whose values follow from the protocol alone, not from who speaks."""

Vector = dict[str, Any]
Step = dict[str, Any]


def vectors() -> list[Vector]:
    """Return every vector, in the order of the file names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]


class Player:
    """Plays one vector, step by step."""

    def __init__(self, vector: Vector) -> None:
        limits = replace(SpeechLimits(), **vector.get("limits", {}))
        reachable = vector.get("reachable", True)
        self.talk = Conversation(limits=limits, capabilities=STANDARD if reachable else None)

    def play(self, step: Step) -> Step:
        """Return what the step causes, in the words of the vectors."""
        name, value = next((key, step[key]) for key in step if key in EVENTS)
        return observed(EVENTS[name](self.talk, value))


def observed(shown: list[Shown]) -> Step:
    """Say what was sent and wanted: `server`, `backend` and `close`, each when there is any."""
    seen: Step = {}
    for item in shown:
        match item:
            case dict():
                seen.setdefault("server", []).append(item)
            case bytes():
                audio = base64.b64encode(item).decode()
                seen.setdefault("server", []).append({"binary_base64": audio})
            case StartSegment(request):
                start = {"start": request.identity.request_id, "text": request.text}
                seen.setdefault("backend", []).append(start)
            case AbortSegment(request_id):
                seen.setdefault("backend", []).append({"abort": request_id})
            case Close(code, reason):
                seen["close"] = {"code": code, "reason": reason}
    return seen


def conversation(steps: list[Step]) -> list[dict[str, Any]]:
    """Return what a client sees whatever adapter speaks: no audio, no sizes, no request ids."""
    seen: list[dict[str, Any]] = []
    for step in steps:
        seen += [
            {key: frame[key] for key in INDEPENDENT if key in frame}
            for frame in step.get("server", [])
            if frame.get("type") not in (None, "audio.chunk")
        ]
        if "close" in step:
            seen.append({"close": step["close"]["code"]})
    return seen


def _speak(talk: Conversation, spoken: dict[str, Any]) -> list[Shown]:
    chunks = [base64.b64decode(data) for data in spoken["audio_base64"]]
    shown = talk.accept(spoken["sample_rate"])
    for data in chunks:
        shown += talk.chunk(data)
    for word in spoken.get("words", []):
        shown += talk.words((word["word"], word["start_ms"], word["end_ms"]))
    shown += talk.complete(spoken.get("samples"))
    if "aligned" in spoken:
        shown += talk.complete_words(aligned=spoken["aligned"])
    return shown + talk.outcome()


def _begin(talk: Conversation, begun: dict[str, Any]) -> list[Shown]:
    shown = talk.accept(begun["sample_rate"])
    for data in begun["audio_base64"]:
        shown += talk.chunk(base64.b64decode(data))
    return shown


def _fail(talk: Conversation, failed: dict[str, Any]) -> list[Shown]:
    cause = failure(
        Reason[failed["reason"]], failed["message"], retry_after_ms=failed.get("retry_after_ms")
    )
    return talk.fail(cause, failed["request_id"])


def _late(talk: Conversation, request_id: str) -> list[Shown]:
    output = talk.requests[0].output
    accepted = Accepted(AudioFormat(output.encoding, 24000))
    return talk.receive(SegmentUpdated(request_id, accepted)) + talk.receive(
        SegmentUpdated(request_id, Outcome(USAGE))
    )


EVENTS: dict[str, Callable[[Conversation, Any], list[Shown]]] = {
    "client": lambda talk, message: talk.frame(json.dumps(message, ensure_ascii=False)),
    "client_frame": lambda talk, text: talk.frame(text),
    "disconnect": lambda talk, _: talk.vanish(),
    "speaks": _speak,
    "begins_to_speak": _begin,
    "fails": _fail,
    "late_updates_of": _late,
    "seconds_pass": lambda talk, seconds: talk.wait(seconds),
    "replicas_reachable": lambda talk, yes: talk.replicas(STANDARD if yes else None),
    "shutdown": lambda talk, final: talk.shut_down(final=final),
}
"""What may happen in a step, and how the session is told."""
