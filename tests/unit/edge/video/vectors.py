"""The golden vectors of the video endpoint: reading them, and playing them to the pure session.

Owns: the form of the files in `contracts/vectors/video`, which its README describes. Does not own:
the expectations, which are data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from contracts.errors import Reason, failure
from contracts.generation import Paused, Resumed, WaitReason
from services.edge.session_events import Close
from services.edge.video.events import AbortGeneration, SendControl, StartGeneration
from services.edge.video.terms import VideoLimits
from tests.unit.edge.video.session_fixture import STANDARD, Conversation, Shown

FOLDER = Path(__file__).parents[4] / "contracts" / "vectors" / "video"

Vector = dict[str, Any]
Step = dict[str, Any]


def vectors() -> list[Vector]:
    """Return every vector, in the order of the file names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]


def server_frames() -> list[dict[str, Any]]:
    """Return every JSON message that the server sends in the vectors."""
    steps = (step for vector in vectors() for step in vector["steps"])
    return [frame for step in steps for frame in step.get("server", []) if "type" in frame]


class Player:
    """Plays one vector, step by step."""

    def __init__(self, vector: Vector) -> None:
        limits = replace(VideoLimits(), **vector.get("limits", {}))
        reachable = vector.get("reachable", True)
        self.talk = Conversation(
            limits=limits,
            capabilities=STANDARD if reachable else None,
            strict=vector.get("strict", False),
        )

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
                data = base64.b64encode(item).decode()
                seen.setdefault("server", []).append({"binary_base64": data})
            case StartGeneration(request):
                seen.setdefault("backend", []).append({"start": request.prompt})
            case SendControl(control):
                word = type(control).__name__.lower()
                seen.setdefault("backend", []).append({word: asdict(control)})
            case AbortGeneration():
                seen.setdefault("backend", []).append({"abort": True})
            case Close(code, reason):
                seen["close"] = {"code": code, "reason": reason}
    return seen


def _chunk(talk: Conversation, made: dict[str, Any]) -> list[Shown]:
    lists = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in made.items()
        if name != "data"
    }
    return talk.chunk(made["data"].encode(), drained=False, **lists)


def _answer(answer: Callable[..., list[Shown]]) -> Callable[[Conversation, Any], list[Shown]]:
    def told(talk: Conversation, value: dict[str, Any]) -> list[Shown]:
        cause = failure(Reason[value["reason"]], value["message"])
        return answer(talk, value["event_id"], cause)

    return told


def _outcome(talk: Conversation, value: dict[str, Any]) -> list[Shown]:
    lists = {
        name: tuple(value.get(name, ())) for name in ("superseded", "unfinished") if name in value
    }
    if "reason" in value:
        return talk.outcome(failure(Reason[value["reason"]], value["message"]), **lists)
    return talk.complete(stopped=value.get("stopped", False), **lists)


def _give_up(talk: Conversation, value: dict[str, Any]) -> list[Shown]:
    retry = value.get("retry_after_ms")
    return talk.give_up(failure(Reason[value["reason"]], value["message"], retry_after_ms=retry))


EVENTS: dict[str, Callable[[Conversation, Any], list[Shown]]] = {
    "client": lambda talk, message: talk.frame(json.dumps(message, ensure_ascii=False)),
    "client_frame": lambda talk, text: talk.frame(text),
    "disconnect": lambda talk, _: talk.vanish(),
    "accepts": lambda talk, _: talk.accept(),
    "makes_chunk": _chunk,
    "makes_trailer": lambda talk, data: talk.trailer(data.encode(), drained=False),
    "chunk_drained": lambda talk, _: talk.drain(),
    "queues": lambda talk, event_id: talk.queued(event_id),
    "refuses": _answer(Conversation.refused),
    "cannot_carry_out": _answer(Conversation.failed),
    "stands_still": lambda talk, _: talk.update(Paused()),
    "goes_on": lambda talk, _: talk.update(Resumed()),
    "waits_for": lambda talk, reason: talk.waits(WaitReason(reason)),
    "ends": _outcome,
    "gives_up": _give_up,
    "seconds_pass": lambda talk, seconds: talk.wait(seconds),
    "shutdown": lambda talk, final: talk.shut_down(final=final),
}
"""What may happen in a step, and how the session is told."""
