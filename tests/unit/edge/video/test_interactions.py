"""Interactions: their syntax, their answers, and what is never passed on."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import Reason, failure
from contracts.generation import Chunk, Interaction
from services.edge.video.events import SendControl
from services.edge.video.ledger import InteractionLedger, LedgerError
from services.edge.video.terms import VideoLimits
from tests.unit.edge.video.session_fixture import CONFLICT, Conversation, kinds


def running(**options: Any) -> Conversation:
    talk = Conversation(**options)
    talk.run()
    return talk


def passed_on(**body: Any) -> Interaction:
    """Return the interaction that a body makes."""
    (sent,) = running().send("session.interaction", interaction=body)
    assert isinstance(sent, SendControl), sent
    assert isinstance(sent.control, Interaction)
    return sent.control


def error_of(talk: Conversation | None = None, **body: Any) -> dict[str, Any]:
    """Return the error of a body that must be refused; the session goes on."""
    (error,) = (talk or running()).send("session.interaction", interaction=body)
    assert isinstance(error, dict)
    assert error["request_id"] == "video_stream-1"
    return error


EVENT = {"prompt": "Snow."}


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [(0, 0), (3, 3), (3.0, 3), (None, None), (2**32 - 1, 2**32 - 1), (0.0, 0), (1e3, 1000)],
)
def test_whole_numbers_of_chunks_are_taken(chunks: object, expected: int | None) -> None:
    """WEIR-164: 3.0 is 3, null is absent."""
    assert passed_on(event=EVENT, transition_chunks=chunks).transition_chunks == expected
    assert passed_on(event=EVENT).transition_chunks is None


@pytest.mark.parametrize(
    "chunks", [True, False, "3", 2.9, -1, -1.0, -0.5, [3], {}, 2**32, 1e300, 10**400]
)
def test_anything_else_is_no_number_of_chunks(chunks: object) -> None:
    """WEIR-164: truth values, texts, fractions and negative numbers; the error is correlated."""
    error = error_of(event_id="e", event=EVENT, transition_chunks=chunks)
    assert (error["code"], error["event_id"]) == ("invalid_message", "e")
    assert "interaction.transition_chunks" in error["message"]


@pytest.mark.parametrize("event_id", ["e", "x" * 128, "ui update 42/é"])
def test_an_id_is_kept_as_it_is(event_id: str) -> None:
    """WEIR-164: any text of 1 to 128 characters."""
    assert passed_on(event_id=event_id, event=EVENT).event_id == event_id


@pytest.mark.parametrize("body", [{}, {"event_id": None}])
def test_an_interaction_without_an_id_gets_one(body: dict[str, Any]) -> None:
    """WEIR-164: made by the source that was passed in, another one each time."""
    talk = running()
    ids = []
    for _ in range(2):
        (sent,) = talk.send("session.interaction", interaction={"event": EVENT, **body})
        assert isinstance(sent, SendControl)
        assert isinstance(sent.control, Interaction)
        ids.append(sent.control.event_id)
    assert ids == ["made-1", "made-2"]


@pytest.mark.parametrize("event_id", ["", "x" * 129, 7, True, ["e"], {}])
def test_an_id_that_is_none_is_refused_without_correlation(event_id: object) -> None:
    """WEIR-164: there is nothing that the error could be correlated with."""
    error = error_of(event_id=event_id, event=EVENT)
    assert error["code"] == "invalid_message"
    assert "event_id" not in error


@pytest.mark.parametrize(
    "event", [None, [], "Snow.", {}, {"prompt": " "}, {"prompt": 7}, {"prompt": "x" * 4097}]
)
def test_an_event_needs_a_prompt(event: object) -> None:
    """WEIR-164: an object with a prompt that is not blank; correlated."""
    error = error_of(event_id="e", event=event)
    assert (error["code"], error["event_id"]) == ("invalid_message", "e")


def test_further_fields_of_an_event_are_passed_on() -> None:
    """WEIR-164: the service answers those that no model reads; the edge needs no new protocol."""
    sent = passed_on(event={"prompt": "Snow.", "brightness": 1, "style": {"a": [None, 1.5]}})
    assert sent.event_fields == {"brightness": 1, "style": {"a": [None, 1.5]}}


def test_fields_that_cannot_travel_are_refused() -> None:
    """WEIR-165: with the path, correlated."""
    deep: object = 1
    for _ in range(17):
        deep = [deep]
    error = error_of(event_id="e", event={"prompt": "Snow.", "style": deep})
    assert (error["code"], error["event_id"]) == ("invalid_message", "e")


def test_a_frame_without_a_body_is_refused() -> None:
    """WEIR-210: and the session goes on."""
    talk = running()
    for fields in ({}, {"interaction": None}, {"interaction": [1]}):
        assert kinds(talk.send("session.interaction", **fields)) == ["invalid_message"]
    assert kinds(talk.interact("e")) == ["interaction"]


def test_unknown_keys_are_ignored_unless_the_operator_is_strict() -> None:
    """WEIR-157: then they are refused, correlated."""
    assert passed_on(event_id="e", event=EVENT, mode="fast").event_id == "e"
    strict = running(strict=True)
    error = error_of(strict, event_id="e", event=EVENT, mode="fast")
    assert (error["code"], error["event_id"]) == ("unsupported_option", "e")
    (refused,) = strict.send(
        "session.interaction", interaction={"event_id": "f", "event": EVENT}, mode="fast"
    )
    assert isinstance(refused, dict)
    assert (refused["code"], refused["event_id"]) == ("unsupported_option", "f")
    assert kinds(strict.send("session.ping", loud=1)) == ["unsupported_option"]
    assert kinds(strict.interact("e")) == ["interaction"]


@pytest.mark.parametrize("event_id", ["e", None])
def test_before_the_start_an_interaction_is_refused(event_id: str | None) -> None:
    """WEIR-176: correlated where it can be, before and while a replica is asked; nothing closes."""
    talk = Conversation()
    for _ in range(2):
        (error,) = talk.interact(event_id)
        assert error["code"] == "session_state"
        assert error.get("event_id") == event_id
        assert "request_id" not in error
        talk.start()
    talk.accept()
    assert kinds(talk.interact("e")) == ["interaction"]


def test_after_a_stop_an_interaction_is_refused() -> None:
    """WEIR-176: with the request id, for the video has begun."""
    talk = running()
    talk.send("session.stop")
    (error,) = talk.interact("e")
    assert (error["code"], error["event_id"]) == ("session_state", "e")
    assert error["request_id"] == "video_stream-1"


def test_every_answer_is_passed_on_with_its_id() -> None:
    """WEIR-166: queued, refused, failed; none of them ends the generation."""
    talk = running()
    for event_id in "abc":
        talk.interact(event_id)
    assert talk.queued("a") == [
        {
            "type": "session.interaction.queued",
            "request_id": "video_stream-1",
            "event_id": "a",
        }
    ]
    (conflict,) = talk.refused("b")
    assert (conflict["code"], conflict["event_id"]) == ("event_id_conflict", "b")  # type: ignore[index,call-overload]  # a message
    talk.queued("c")
    (failed,) = talk.failed("c")
    assert (failed["code"], failed["event_id"]) == ("interaction_failed", "c")  # type: ignore[index,call-overload]  # a message
    busy = failure(Reason.OVERLOADED, "Many wait.", retry_after_ms=250)
    talk.interact("d")
    (full,) = talk.refused("d", busy)
    assert (full["code"], full["retry_after_ms"]) == ("overloaded", 250)  # type: ignore[index,call-overload]  # a message
    assert kinds(talk.chunk(started=("a",), active=("a",), completed=("a",)))[:2] == [
        "video.chunk_metadata",
        "binary",
    ]


def test_a_repeated_id_is_answered_again() -> None:
    """WEIR-166: whatever has become of the first one; a failure is told again as well."""
    talk = running()
    talk.interact("a")
    talk.interact("a")
    assert kinds(talk.queued("a") + talk.queued("a")) == ["session.interaction.queued"] * 2
    talk.chunk(started=("a",), active=("a",), completed=("a",))
    talk.interact("a")
    assert kinds(talk.queued("a")) == ["session.interaction.queued"]
    talk.interact("f")
    talk.queued("f")
    talk.failed("f")
    talk.interact("f")
    assert kinds(talk.queued("f") + talk.failed("f")) == [
        "session.interaction.queued",
        "interaction_failed",
    ]
    done = talk.complete()[0]
    assert isinstance(done, dict)
    assert (done["superseded_event_ids"], done["unfinished_event_ids"]) == ([], [])


def test_too_many_without_an_answer_are_refused_and_may_come_again() -> None:
    """WEIR-177: nothing was passed on, so nothing is recorded."""
    talk = running(limits=VideoLimits(pending_interactions=2))
    assert kinds(talk.interact("a") + talk.interact("b")) == ["interaction"] * 2
    (error,) = talk.interact("c")
    assert (error["code"], error["event_id"]) == ("overloaded", "c")
    assert error["retry_after_ms"] > 0
    talk.refused("a", CONFLICT)
    assert kinds(talk.interact("c")) == ["interaction"]


def test_what_no_answer_came_for_is_refused_at_the_end() -> None:
    """WEIR-166: once for each, before the end is told."""
    talk = running()
    for event_id in ("a", "b", "a"):
        talk.interact(event_id)
    shown = talk.complete()
    assert kinds(shown) == ["session_state"] * 3 + ["session.done", "close 1000"]
    assert sorted(str(m["event_id"]) for m in shown[:3] if isinstance(m, dict)) == ["a", "a", "b"]


def test_the_account_of_an_id_has_one_end() -> None:
    """WEIR-167: what is told twice, or of nothing, is the service's fault."""
    for told in (
        Chunk(0, 0, 9, b"x", started=("a",)),
        Chunk(0, 0, 9, b"x", completed=("a",)),
        Chunk(0, 0, 9, b"x", superseded=("a",)),
    ):
        with pytest.raises(LedgerError):
            InteractionLedger().shown(told)
    ledger = InteractionLedger()
    for answer in (ledger.queued, ledger.refused, ledger.failed):
        with pytest.raises(LedgerError):
            answer("a")
    ledger.ask("a")
    ledger.queued("a")
    ledger.shown(Chunk(0, 0, 9, b"x", superseded=("a",)))
    with pytest.raises(LedgerError):
        ledger.shown(Chunk(1, 1, 9, b"x", active=("a",)))


@pytest.mark.parametrize("lists", [{"started": ("z",)}, {"completed": ("z",)}])
def test_a_service_that_tells_what_cannot_be_is_cut_off(lists: dict[str, Any]) -> None:
    """WEIR-167: with a fixed sentence and 1011."""
    talk = running()
    assert kinds(talk.chunk(drained=False, **lists)) == ["abort", "internal", "close 1011"]
