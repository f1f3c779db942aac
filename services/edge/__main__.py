"""`python -m services.edge`: the edge as a process.

Owns: putting the edge together from its settings. Does not own: any of its parts.
"""

from __future__ import annotations

import sys
import uuid

from services.edge.backends.tts import TtsBackend
from services.edge.backends.video import VideoBackend
from services.edge.documents import capabilities_document, video_part, voices_document
from services.edge.endpoints import speech_endpoint, video_endpoint
from services.edge.http import SPEECH_PATH, VIDEO_PATH, Document
from services.edge.server import EdgeServer
from services.edge.settings import EdgeSettings
from services.edge.speech.frontends import open_frontend
from services.edge.speech.metrics import SpeechMetrics
from services.edge.speech.negotiation import NegotiationPolicy
from services.edge.speech.terms import SpeechTerms
from services.edge.text.registry import import_frontend_modules, registered_profiles
from services.edge.video.metrics import VideoMetrics
from services.edge.video.terms import VideoTerms
from services.runtime.admin import serving_admin
from services.runtime.lifecycle import EXIT_SETTINGS, run_main, run_process
from services.runtime.logging import get_logger
from services.runtime.metrics import Metrics

SERVICE = "edge"
_LOGGER = get_logger(__name__)


async def serve(settings: EdgeSettings) -> int:
    """Run the edge until a signal ends it; return the exit status."""
    try:
        import_frontend_modules(settings.frontends)
    except ValueError as error:
        _LOGGER.error("setting_refused", problem=f"EDGE_FRONTENDS: {error}")
        return EXIT_SETTINGS
    profiles = frozenset(registered_profiles())
    if settings.speech.commitment_profile not in profiles:
        known = ", ".join(sorted(profiles))
        _LOGGER.error("setting_refused", problem=f"EDGE_COMMITMENT_PROFILE is not one of {known}")
        return EXIT_SETTINGS
    if settings.allow_anonymous:
        _LOGGER.warning("anonymous_access_allowed", host=settings.host)
    else:
        _LOGGER.info("local_access_only", host=settings.host, note="no key is asked for")
    metrics = Metrics(SERVICE)
    server = _server(settings, metrics, profiles)
    async with serving_admin(settings.admin, metrics, lambda: server.ready):
        return await run_process(SERVICE, server, settings.drain)


def _server(settings: EdgeSettings, metrics: Metrics, profiles: frozenset[str]) -> EdgeServer:
    backend = TtsBackend(
        settings.tts, known_profiles=profiles, pool=settings.pool, channel=settings.channel
    )
    terms = _speech_terms(settings, profiles)
    video = VideoBackend(settings.video_backend, pool=settings.pool, channel=settings.channel)
    video_terms = _video_terms(settings)
    endpoints = {
        SPEECH_PATH: speech_endpoint(
            backend, terms, settings.transmission(), SpeechMetrics(metrics)
        ),
        VIDEO_PATH: video_endpoint(video, video_terms, settings.link(), VideoMetrics(metrics)),
    }
    documents: dict[str, Document] = {
        "/v1/capabilities": lambda: capabilities_document(
            backend.capabilities(), terms, video_part(video.capabilities(), video_terms.limits)
        ),
        "/v1/audio/voices": lambda: voices_document(backend.capabilities()),
    }
    return EdgeServer(settings, endpoints, documents)


def _speech_terms(settings: EdgeSettings, profiles: frozenset[str]) -> SpeechTerms:
    return SpeechTerms(
        session_id="speech",
        policy=NegotiationPolicy(
            profiles, settings.speech.commitment_profile, settings.speech.strict
        ),
        limits=settings.speech.limits(),
        open_frontend=open_frontend,
    )


def _video_terms(settings: EdgeSettings) -> VideoTerms:
    return VideoTerms(
        session_id="video",
        request_id="video_stream",
        limits=settings.video.limits(),
        make_id=lambda: str(uuid.uuid4()),
        strict=settings.speech.strict,
    )


if __name__ == "__main__":
    sys.exit(run_main(SERVICE, EdgeSettings, serve))
