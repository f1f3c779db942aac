"""The JSON documents of the edge: what can be asked of it, and which voices it has.

Owns: the public form of capabilities and limits. Does not own: where they come from. Enforces:
IO-INV-300 (internal records are translated into public ones, field by field).
"""

from __future__ import annotations

from dataclasses import asdict

from contracts.capabilities import AUTO, SpeechCapabilities
from contracts.errors import Failure, Reason, failure
from contracts.modality import SAMPLE_RATES_HZ, AudioEncoding
from contracts.video import VideoCapabilities
from services.edge.speech.terms import SpeechTerms
from services.edge.video.publication import public_capabilities, public_limits
from services.edge.video.terms import VideoLimits

NO_REPLICA = failure(
    Reason.BACKEND_UNAVAILABLE, "No speech service can be reached.", retry_after_ms=1000
)
NOTHING = failure(
    Reason.BACKEND_UNAVAILABLE, "No speech or video service can be reached.", retry_after_ms=1000
)


def capabilities_document(
    capabilities: SpeechCapabilities | None, terms: SpeechTerms, video: object | None = None
) -> object | Failure:
    """Return the body of `GET /v1/capabilities`: a part for each service that can be reached.

    `video` is the part that `video_part` has made.
    """
    parts = {"speech": speech_part(capabilities, terms), "video": video}
    reachable = {name: part for name, part in parts.items() if part is not None}
    return reachable or NOTHING


def speech_part(capabilities: SpeechCapabilities | None, terms: SpeechTerms) -> object | None:
    """Return what can be asked of the speech endpoint; None when no replica is reachable."""
    if capabilities is None:
        return None
    return {
        "model": capabilities.model,
        "sample_rate": capabilities.sample_rate_hz,
        "languages": [AUTO, *capabilities.languages],
        "default_voice": capabilities.default_voice,
        "task_types": [task.value for task in capabilities.task_types],
        "options": sorted(capabilities.options),
        "response_formats": [encoding.value for encoding in AudioEncoding],
        "sample_rates": list(SAMPLE_RATES_HZ),
        "word_timestamps": capabilities.word_times,
        "audio_streaming": capabilities.audio_streaming,
        "max_segment_characters": capabilities.max_text_characters,
        "text_commitment": [
            {
                "profile": record.profile,
                "languages": list(record.languages),
                "independent_segments": record.independent_segments,
                "context_preservation": record.context_preservation,
                "audio_streaming": record.audio_streaming,
                "word_timestamps": record.word_timestamps,
                "failed_segment_retries": record.failed_segment_retries,
            }
            for record in capabilities.text_commitment
        ],
        "default_commitment_profile": terms.policy.default_profile,
        "limits": asdict(terms.limits),
    }


def video_part(capabilities: VideoCapabilities | None, limits: VideoLimits) -> object | None:
    """Return what can be asked of the video endpoint; None when no replica is reachable."""
    if capabilities is None:
        return None
    return {**public_capabilities(capabilities), "limits": public_limits(limits)}


def voices_document(capabilities: SpeechCapabilities | None) -> object | Failure:
    """Return the body of `GET /v1/audio/voices`."""
    if capabilities is None:
        return NO_REPLICA
    return {
        "default_voice": capabilities.default_voice,
        "voices": [voice.name for voice in capabilities.voices],
        "details": [
            {
                "name": voice.name,
                "languages": list(voice.languages),
                "description": voice.description,
            }
            for voice in capabilities.voices
        ],
    }
