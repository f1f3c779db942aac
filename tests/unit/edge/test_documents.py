"""The JSON documents of the edge."""

from __future__ import annotations

import json
from dataclasses import fields

import msgspec

from contracts.capabilities import SpeechCapabilities, TextCommitmentCapabilities, Voice
from contracts.errors import Failure, Reason
from services.edge.documents import capabilities_document, voices_document
from services.edge.speech.frontends import open_frontend
from services.edge.speech.negotiation import NegotiationPolicy
from services.edge.speech.terms import SpeechLimits, SpeechTerms

PROFILE = "zh_en_special_v1"
TERMS = SpeechTerms(
    "speech", NegotiationPolicy(frozenset({PROFILE}), PROFILE), SpeechLimits(), open_frontend
)
CAPABILITIES = SpeechCapabilities(
    model="tone",
    sample_rate_hz=24000,
    languages=("English", "Chinese"),
    voices=(Voice("Ada", ("English",), "Clear."), Voice("Lin", ("Chinese",))),
    default_voice="Ada",
    max_text_characters=1000,
    word_times=True,
    audio_streaming=True,
    text_commitment=(
        TextCommitmentCapabilities(PROFILE, ("English",), True, False, True, True, True),
    ),
)


def test_capabilities_are_told_field_by_field() -> None:
    """IO-INV-300: what a client may ask for, under its public names."""
    document = capabilities_document(CAPABILITIES, TERMS)
    speech = json.loads(msgspec.json.encode(document))["speech"]
    assert speech["model"] == "tone"
    assert speech["sample_rate"] == 24000
    assert speech["languages"] == ["Auto", "English", "Chinese"]
    assert speech["default_voice"] == "Ada"
    assert "CustomVoice" in speech["task_types"]
    assert set(speech["response_formats"]) == {"wav", "pcm", "flac", "mp3", "opus", "mulaw"}
    assert speech["sample_rates"] == [8000, 16000, 22050, 24000, 44100, 48000]
    assert speech["word_timestamps"] is True
    assert speech["audio_streaming"] is True
    assert speech["max_segment_characters"] == 1000
    assert speech["default_commitment_profile"] == PROFILE
    assert speech["text_commitment"] == [
        {
            "profile": PROFILE,
            "languages": ["English"],
            "independent_segments": True,
            "context_preservation": False,
            "audio_streaming": True,
            "word_timestamps": True,
            "failed_segment_retries": True,
        }
    ]


def test_every_limit_in_force_is_published() -> None:
    """WEIR-174: the limits of a session can be read before one is opened."""
    document = capabilities_document(CAPABILITIES, TERMS)
    limits = json.loads(msgspec.json.encode(document))["speech"]["limits"]
    assert limits == {f.name: getattr(TERMS.limits, f.name) for f in fields(SpeechLimits)}


def test_voices_are_told_by_name_and_in_detail() -> None:
    """IO-INV-300: the plain list of names stands beside the details."""
    assert json.loads(msgspec.json.encode(voices_document(CAPABILITIES))) == {
        "default_voice": "Ada",
        "voices": ["Ada", "Lin"],
        "details": [
            {"name": "Ada", "languages": ["English"], "description": "Clear."},
            {"name": "Lin", "languages": ["Chinese"], "description": ""},
        ],
    }


def test_without_a_replica_a_document_says_why_and_when_to_ask_again() -> None:
    """WEIR-172: the answer is a failure that may be retried, not an empty document."""
    for made in (capabilities_document(None, TERMS), voices_document(None)):
        assert isinstance(made, Failure)
        assert made.reason is Reason.BACKEND_UNAVAILABLE
        assert made.retry_after_ms
