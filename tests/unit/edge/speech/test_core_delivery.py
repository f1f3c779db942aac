"""One segment on its way to the client: files, raw chunks, word times."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from contracts.errors import Reason, failure
from services.edge.speech.terms import SpeechLimits
from tests.unit.edge.speech.session_fixture import (
    STREAMED,
    Conversation,
    codes,
    kinds,
    messages,
)

WORDS = {**STREAMED, "word_timestamps": True}


def started(config: dict[str, Any], **terms: Any) -> Conversation:
    """A conversation with one accepted segment of an utterance that has ended."""
    talk = Conversation(config=config, **terms)
    talk.text("Hi there.")
    talk.done()
    assert kinds(talk.accept()) == ["audio.start"]
    return talk


def test_a_start_tells_the_true_format() -> None:
    """IO-INV-001: the rate is what the backend says, not what was asked for."""
    talk = Conversation(config=STREAMED)
    talk.text("Hi there.")
    talk.done()
    assert talk.accept(rate=22050) == [
        {
            "type": "audio.start",
            "utterance_index": 0,
            "sentence_index": 0,
            "sentence_text": "Hi there.",
            "format": "pcm",
            "sample_rate": 22050,
            "channels": 1,
            "request_id": "s.0.0",
            "segment_index": 0,
            "source_start": 0,
            "source_end": 9,
        }
    ]


@pytest.mark.parametrize(("encoding", "width"), [("pcm", 2), ("mulaw", 1)])
def test_raw_audio_goes_out_as_it_comes(encoding: str, width: int) -> None:
    """IO-INV-101: chunks at once and unchanged, then their count, then the end."""
    talk = started({**STREAMED, "response_format": encoding})
    chunks = [bytes([number]) * width * 10 for number in range(3)]
    for data in chunks:
        assert talk.chunk(data) == [data]
    assert talk.complete() == []
    assert talk.outcome() == [
        {
            "type": "audio.done",
            "utterance_index": 0,
            "sentence_index": 0,
            "total_bytes": 30 * width,
            "error": False,
        },
        {"type": "session.done", "utterance_index": 0, "total_sentences": 1},
    ]


@pytest.mark.parametrize("encoding", ["wav", "pcm", "flac", "mp3", "opus", "mulaw"])
def test_a_file_is_one_binary(encoding: str) -> None:
    """WEIR-150: nothing goes out before the file is whole."""
    talk = started({"response_format": encoding})
    assert talk.chunk(b"RIFF") == []
    assert talk.chunk(b"WAVE") == []
    assert talk.complete(samples=4) == [b"RIFFWAVE"]
    assert messages(talk.outcome(), "audio.done")[0]["total_bytes"] == 8


@pytest.mark.parametrize("config", [{}, STREAMED], ids=["file", "stream"])
def test_text_without_sound_has_valid_and_empty_audio(config: dict[str, Any]) -> None:
    """IO-INV-101: start and end, no binary."""
    talk = started(config)
    assert talk.complete() == []
    shown = talk.outcome()
    assert kinds(shown) == ["audio.done", "session.done"]
    assert messages(shown, "audio.done")[0]["total_bytes"] == 0
    assert not messages(shown, "audio.done")[0]["error"]


def test_a_file_of_exactly_its_limit_goes_out() -> None:
    """WEIR-150: the limit is allowed."""
    talk = started({}, limits=SpeechLimits(segment_file_bytes=8))
    talk.chunk(b"1234")
    talk.chunk(b"5678")
    assert talk.complete(samples=4) == [b"12345678"]


def test_a_file_above_its_limit_fails_the_segment() -> None:
    """WEIR-150: aborted once, nothing of it sent, the utterance fails, the session goes on."""
    talk = started({}, limits=SpeechLimits(segment_file_bytes=8))
    talk.chunk(b"12345678")
    shown = talk.chunk(b"9")
    assert kinds(shown) == ["abort s.0.0", "error", "audio.done", "session.done"]
    error, end = messages(shown, "error")[0], messages(shown, "audio.done")[0]
    assert (error["code"], error["segment_index"]) == ("segment_failed", 0)
    assert "partial_audio" not in error
    assert (end["error"], end["total_bytes"]) == (True, 0)
    assert talk.complete(samples=1) == []
    talk.text("Next.")
    talk.done()
    assert kinds(talk.speak(b"12345678")) == ["audio.start", "audio", "audio.done", "session.done"]


def test_a_stream_has_no_file_limit() -> None:
    """WEIR-150: raw chunks are not kept, so their sum has no limit here."""
    talk = started(STREAMED, limits=SpeechLimits(segment_file_bytes=8))
    assert [kinds(talk.chunk(bytes(8))) for _ in range(4)] == [["audio"]] * 4


def test_word_times_come_in_json() -> None:
    """IO-INV-101: audio in base64 without times, then one empty chunk with every word."""
    talk = started(WORDS)
    first, second = bytes(24 * 2 * 20), bytes(24 * 2 * 5)
    shown = talk.chunk(first) + talk.words(("Hi", 0, 10)) + talk.chunk(second)
    shown += talk.complete() + talk.words(("there", 10, 25)) + talk.complete_words()
    shown += talk.outcome()
    assert kinds(shown) == ["audio.chunk"] * 3 + ["audio.done", "session.done"]
    common = {"type": "audio.chunk", "utterance_index": 0, "sentence_index": 0}
    common |= {"sample_rate": 24000, "channels": 1}
    words = [
        {"word": "Hi", "start_ms": 0, "end_ms": 10},
        {"word": "there", "start_ms": 10, "end_ms": 25},
    ]
    rows = [(0, 0, 20, first, None), (1, 20, 25, second, None), (2, 0, 25, b"", words)]
    assert messages(shown, "audio.chunk") == [
        {
            **common,
            "chunk_id": number,
            "chunk_start_ms": start,
            "chunk_end_ms": end,
            "audio_b64": base64.b64encode(data).decode(),
            "timestamps": times,
        }
        for number, start, end, data, times in rows
    ]
    assert messages(shown, "audio.done")[0]["total_bytes"] == len(first) + len(second)


def test_the_chunk_with_the_words_is_the_last_whatever_ends_first() -> None:
    """IO-INV-101: a backend may know all words before the audio has ended."""
    talk = started(WORDS)
    shown = talk.words(("Hi", 0, 10)) + talk.complete_words() + talk.chunk(bytes(480))
    shown += talk.complete() + talk.outcome()
    chunks = messages(shown, "audio.chunk")
    assert [chunk["timestamps"] is None for chunk in chunks] == [True, False]
    assert (chunks[1]["chunk_start_ms"], chunks[1]["chunk_end_ms"]) == (0, 10)
    assert chunks[1]["audio_b64"] == ""
    assert messages(talk.everything, "audio.start")[0]["word_timestamps"] is True


@pytest.mark.parametrize(("aligned", "times"), [(True, []), (False, None)])
def test_silence_and_a_failed_alignment_differ(aligned: bool, times: list[object] | None) -> None:
    """IO-INV-101: an empty list is silence, null is an alignment that failed; the audio is good."""
    talk = started(WORDS)
    shown = talk.chunk(bytes(480)) + talk.complete() + talk.complete_words(aligned=aligned)
    shown += talk.outcome()
    assert messages(shown, "audio.chunk")[-1]["timestamps"] == times
    assert messages(shown, "audio.chunk")[-1]["audio_b64"] == ""
    assert not messages(shown, "audio.done")[0]["error"]


def test_chunk_times_never_drift() -> None:
    """IO-INV-101: counted in samples from the start; rounding is never carried along."""
    talk = Conversation(config={**WORDS, "sample_rate": 22050})
    talk.text("Hi.")
    talk.done()
    talk.accept()
    for _ in range(300):
        talk.chunk(bytes(2 * 7))
    chunks = messages(talk.everything, "audio.chunk")
    ends = [round(1000 * 7 * (number + 1) / 22050) for number in range(300)]
    assert [chunk["chunk_end_ms"] for chunk in chunks] == ends
    assert [chunk["chunk_start_ms"] for chunk in chunks] == [0, *ends[:-1]]
    assert [chunk["chunk_id"] for chunk in chunks] == list(range(300))


def test_chunks_count_anew_in_every_segment() -> None:
    """IO-INV-101: chunk ids and times belong to their segment."""
    talk = Conversation(config=WORDS)
    talk.text("One. Two.")
    talk.done()
    for _ in range(2):
        talk.accept()
        chunk = messages(talk.chunk(bytes(480)), "audio.chunk")[0]
        assert (chunk["chunk_id"], chunk["chunk_start_ms"], chunk["chunk_end_ms"]) == (0, 0, 10)
        talk.complete()
        talk.complete_words()
        talk.outcome()


FAILURE = failure(Reason.OVERLOADED, "All replicas are busy.", retry_after_ms=250)


def test_a_failure_before_acceptance_has_no_end_of_audio() -> None:
    """IO-INV-101: what never started is not ended."""
    talk = Conversation(config=STREAMED)
    talk.text("Hi there.")
    talk.done()
    shown = talk.fail(FAILURE)
    assert shown == [
        {
            "type": "error",
            "message": "All replicas are busy.",
            "code": "segment_failed",
            "cause": "overloaded",
            "request_id": "s.0.0",
            "utterance_index": 0,
            "segment_index": 0,
            "retry_after_ms": 250,
        },
        {"type": "session.done", "utterance_index": 0, "total_sentences": 0},
    ]


@pytest.mark.parametrize(
    ("config", "chunk", "partial"),
    [
        (STREAMED, bytes(2), True),
        (WORDS, bytes(2), True),
        (STREAMED, None, False),
        ({}, b"RI", False),
    ],
    ids=["stream", "words", "nothing yet", "half a file"],
)
def test_sent_bytes_of_a_failed_segment_are_to_be_discarded(
    config: dict[str, Any], chunk: bytes | None, partial: bool
) -> None:
    """WEIR-150: said exactly when bytes had gone out."""
    talk = started(config)
    if chunk is not None:
        talk.chunk(chunk)
    shown = talk.fail(failure(Reason.INTERNAL, "No."))
    assert kinds(shown) == ["error", "audio.done", "session.done"]
    error, end = messages(shown, "error")[0], messages(shown, "audio.done")[0]
    assert error.get("partial_audio") is (True if partial else None)
    assert error.get("action") == ("discard" if partial else None)
    assert "retry_after_ms" not in error
    assert (end["error"], end["total_bytes"]) == (True, 2 if partial else 0)


def test_a_file_that_went_out_is_partial_audio_too() -> None:
    """WEIR-150: a failure between the file and the outcome takes the file back."""
    talk = started({})
    talk.chunk(b"RIFF")
    assert talk.complete(samples=2) == [b"RIFF"]
    error = messages(talk.fail(failure(Reason.INTERNAL, "No.")), "error")[0]
    assert (error["partial_audio"], error["action"]) == (True, "discard")
    assert codes(talk.everything) == ["segment_failed"]
