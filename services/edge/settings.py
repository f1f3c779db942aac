"""What an operator can set about the edge.

Owns: every EDGE_ variable, its default, unit and bounds, and the records made of them. Does not
own: reading the environment (`services.runtime.settings`), what the values do. Enforces: WEIR-180
(a public address without a key is refused unless anonymous access is allowed explicitly).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, fields

from contracts.video import MAX_FRAMES, MAX_PROMPT_CHARACTERS
from services.edge.backends.settings import (
    PoolSettings,
    TtsBackendSettings,
    VideoBackendSettings,
)
from services.edge.link import LinkSettings
from services.edge.speech.driver import Transmission
from services.edge.speech.terms import SpeechLimits
from services.edge.video.messages import MAX_FRAME_RATE
from services.edge.video.terms import VideoLimits
from services.runtime.admin import AdminSettings
from services.runtime.lifecycle import DrainSettings
from services.runtime.logging import LogSettings
from services.runtime.settings import group, setting
from services.runtime.transport import ChannelSettings

_HOST = re.compile(
    r"\*|[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:]*:[0-9A-Fa-f:]+:[0-9A-Fa-f:.]*"
)
_ORIGIN = re.compile(r"\*|https?://[A-Za-z0-9._\[\]:-]+/?")
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """The speech endpoint: its limits and the operator's decisions."""

    commitment_profile: str = setting(
        "EDGE_COMMITMENT_PROFILE",
        "zh_en_special_v1",
        "Commitment profile of a client that names none.",
    )
    strict: bool = setting(
        "EDGE_STRICT",
        False,
        "Refuse a model or voice that is not served, and in a video what the model does not read, "
        "where otherwise the default serves with a warning.",
    )
    config_timeout_s: float = setting(
        "EDGE_SPEECH_CONFIG_TIMEOUT_S",
        10.0,
        "Time in which the first session.config must arrive.",
        unit="s",
        minimum=0.05,
    )
    idle_timeout_s: float = setting(
        "EDGE_SPEECH_IDLE_TIMEOUT_S",
        30.0,
        "Time without input after which a session ends; it stands still while committed text is "
        "being spoken.",
        unit="s",
        minimum=0.05,
    )
    config_message_characters: int = setting(
        "EDGE_SPEECH_CONFIG_MESSAGE_CHARACTERS",
        4 * 1024 * 1024,
        "Greatest length of a session.config message.",
        unit="characters",
        minimum=1024,
    )
    message_characters: int = setting(
        "EDGE_SPEECH_MESSAGE_CHARACTERS",
        128 * 1024,
        "Greatest length of any other message.",
        unit="characters",
        minimum=256,
    )
    utterance_characters: int = setting(
        "EDGE_SPEECH_UTTERANCE_CHARACTERS",
        131_072,
        "Greatest length of the text of one utterance.",
        unit="characters",
        minimum=1,
    )
    pending_characters: int = setting(
        "EDGE_SPEECH_PENDING_CHARACTERS",
        4096,
        "Greatest length of the suffix that commitment mode may hold back.",
        unit="code points",
        minimum=1,
    )
    ready_segments: int = setting(
        "EDGE_SPEECH_READY_SEGMENTS",
        8,
        "Segments that may wait in front of synthesis; more stay staged in order.",
        unit="segments",
        minimum=1,
    )
    segment_file_bytes: int = setting(
        "EDGE_SPEECH_SEGMENT_FILE_BYTES",
        64 * 1024 * 1024,
        "Greatest size of the audio file of one segment, where audio is not streamed.",
        unit="bytes",
        minimum=1024,
    )
    retry_deadline_s: float = setting(
        "EDGE_SPEECH_RETRY_DEADLINE_S",
        30.0,
        "Time in which a segment must be accepted by a replica, all attempts together.",
        unit="s",
        minimum=0.1,
    )

    def limits(self) -> SpeechLimits:
        """Return the limits of a session."""
        return SpeechLimits(
            config_timeout_s=self.config_timeout_s,
            idle_timeout_s=self.idle_timeout_s,
            config_message_characters=self.config_message_characters,
            message_characters=self.message_characters,
            utterance_characters=self.utterance_characters,
            pending_characters=self.pending_characters,
            ready_segments=self.ready_segments,
            segment_file_bytes=self.segment_file_bytes,
        )


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """The video endpoint: its limits."""

    start_timeout_s: float = setting(
        "EDGE_VIDEO_START_TIMEOUT_S",
        10.0,
        "Time in which session.start must arrive.",
        unit="s",
        minimum=0.05,
    )
    start_message_characters: int = setting(
        "EDGE_VIDEO_START_MESSAGE_CHARACTERS",
        4 * 1024 * 1024,
        "Greatest length of a session.start message.",
        unit="characters",
        minimum=1024,
    )
    message_characters: int = setting(
        "EDGE_VIDEO_MESSAGE_CHARACTERS",
        128 * 1024,
        "Greatest length of any other message.",
        unit="characters",
        minimum=256,
    )
    stall_timeout_s: float = setting(
        "EDGE_VIDEO_STALL_TIMEOUT_S",
        60.0,
        "Time without a sign of progress after which a generation is given up; it stands still "
        "while generation waits for its viewer.",
        unit="s",
        minimum=0.05,
    )
    gated_timeout_s: float = setting(
        "EDGE_VIDEO_GATED_TIMEOUT_S",
        120.0,
        "Time that a video may stand still for a pause or for playback without a new "
        "session.playback.",
        unit="s",
        minimum=0.05,
    )
    session_s: float = setting(
        "EDGE_VIDEO_SESSION_S",
        1800.0,
        "Greatest duration of a session; then it ends as with session.stop.",
        unit="s",
        minimum=0.05,
    )
    drain_s: float = setting(
        "EDGE_VIDEO_DRAIN_S",
        15.0,
        "Time that a running video still has when the edge drains; then it ends as with "
        "session.stop. Less than EDGE_DRAIN_DEADLINE_S by what one chunk takes.",
        unit="s",
        minimum=0.0,
    )
    max_pixels: int = setting(
        "EDGE_VIDEO_MAX_PIXELS",
        1280 * 720,
        "Greatest width times height of a video.",
        unit="pixels",
        minimum=256,
    )
    max_frames_per_second: int = setting(
        "EDGE_VIDEO_MAX_FPS",
        60,
        "Greatest frame rate of a video.",
        unit="frames per second",
        minimum=1,
        maximum=MAX_FRAME_RATE,
    )
    max_num_frames: int = setting(
        "EDGE_VIDEO_MAX_NUM_FRAMES",
        MAX_FRAMES,
        "Greatest count of frames of a video that has an end.",
        unit="frames",
        minimum=1,
        maximum=MAX_FRAMES,
    )
    prompt_characters: int = setting(
        "EDGE_VIDEO_PROMPT_CHARACTERS",
        MAX_PROMPT_CHARACTERS,
        "Greatest length of a prompt.",
        unit="characters",
        minimum=1,
        maximum=MAX_PROMPT_CHARACTERS,
    )
    pending_interactions: int = setting(
        "EDGE_VIDEO_PENDING_INTERACTIONS",
        64,
        "Interactions of one session that may wait for the answer of the video service.",
        unit="interactions",
        minimum=1,
        maximum=10_000,
    )
    chunks_ahead: int = setting(
        "EDGE_VIDEO_CHUNKS_AHEAD",
        2,
        "Chunks that generation may be ahead of what the viewer has taken.",
        unit="chunks",
        minimum=1,
        maximum=100,
    )

    def limits(self) -> VideoLimits:
        """Return the limits of a session."""
        return VideoLimits(**{f.name: getattr(self, f.name) for f in fields(self)})


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How the edge treats any WebSocket connection."""

    max_sessions: int = setting(
        "EDGE_MAX_SESSIONS",
        1000,
        "Connections served at once; one more is refused with OVERLOADED.",
        unit="connections",
        minimum=1,
    )
    max_frame_bytes: int = setting(
        "EDGE_MAX_FRAME_BYTES",
        16 * 1024 * 1024,
        "Greatest size of one frame; a larger one closes the connection with 1009.",
        unit="bytes",
        minimum=1024,
    )
    send_deadline_s: float = setting(
        "EDGE_SEND_DEADLINE_S",
        30.0,
        "Time after which a peer that drains nothing is removed; one that moves slowly is not.",
        unit="s",
        minimum=0.1,
    )
    ping_interval_s: float = setting(
        "EDGE_PING_INTERVAL_S",
        20.0,
        "Time between two WebSocket pings, which keep middle boxes from forgetting a connection.",
        unit="s",
        minimum=0.1,
    )
    handshake_timeout_s: float = setting(
        "EDGE_HANDSHAKE_TIMEOUT_S",
        10.0,
        "Time in which a handshake must be complete.",
        unit="s",
        minimum=0.1,
    )
    outbox_bytes: int = setting(
        "EDGE_OUTBOX_BYTES",
        64 * 1024,
        "Bytes that may wait in front of one peer before synthesis waits for it.",
        unit="bytes",
        minimum=1024,
    )
    outbox_frames: int = setting(
        "EDGE_OUTBOX_FRAMES",
        256,
        "Frames that may wait in front of one peer before synthesis waits for it.",
        unit="frames",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """The edge process."""

    host: str = setting("EDGE_HOST", "127.0.0.1", "Address that the edge listens on.")
    port: int = setting(
        "EDGE_PORT",
        8000,
        "Port that the edge listens on; 0 lets the system choose one, which the ready line names.",
        minimum=0,
        maximum=65535,
    )
    allow_anonymous: bool = setting(
        "EDGE_ALLOW_ANONYMOUS",
        False,
        "Listen on an address that other machines can reach although no key protects it.",
    )
    allowed_hosts: tuple[str, ...] = setting(
        "EDGE_ALLOWED_HOSTS",
        (),
        "Names in the Host header that are served beside localhost, 127.0.0.1, ::1 and EDGE_HOST, "
        "without a port; * serves every name.",
    )
    allowed_origins: tuple[str, ...] = setting(
        "EDGE_ALLOWED_ORIGINS",
        (),
        "Origins (scheme://host[:port]) whose pages may connect beside those of the same origin; "
        "* admits every page.",
    )
    frontends: tuple[str, ...] = setting(
        "EDGE_FRONTENDS",
        (),
        "Python modules imported at start-up, which register further commitment profiles.",
    )
    tts: TtsBackendSettings = group(TtsBackendSettings)
    pool: PoolSettings = group(PoolSettings)
    channel: ChannelSettings = group(ChannelSettings)
    speech: SpeechSettings = group(SpeechSettings)
    video_backend: VideoBackendSettings = group(VideoBackendSettings)
    video: VideoSettings = group(VideoSettings)
    connection: ConnectionSettings = group(ConnectionSettings)
    log: LogSettings = group(LogSettings)
    drain: DrainSettings = group(DrainSettings)
    admin: AdminSettings = group(AdminSettings)

    def __post_init__(self) -> None:
        # WEIR-180: a mistake in one variable must not open the service to the network.
        if not self.allow_anonymous and not _is_loopback(self.host):
            raise ValueError(
                f"EDGE_HOST: {self.host} can be reached from other machines, and no key protects "
                "the edge; set EDGE_ALLOW_ANONYMOUS=1 when that is meant"
            )

        for name in self.allowed_hosts:
            if _HOST.fullmatch(name) is None:
                raise ValueError(f"EDGE_ALLOWED_HOSTS: {name} is not a name without a port, or *")
        for origin in self.allowed_origins:
            if _ORIGIN.fullmatch(origin) is None:
                raise ValueError(
                    f"EDGE_ALLOWED_ORIGINS: {origin} is not scheme://host[:port], or *"
                )

    def hosts(self) -> frozenset[str]:
        """Return the names that may stand in the Host header, in lower case."""
        own = {self.host.strip("[]").lower()}
        return frozenset({*_LOCAL_NAMES, *own, *(name.lower() for name in self.allowed_hosts)})

    def origins(self) -> frozenset[str]:
        """Return the origins that are admitted beside the same origin, in lower case."""
        return frozenset(origin.lower().rstrip("/") for origin in self.allowed_origins)

    def transmission(self) -> Transmission:
        """Return how connections to the speech endpoint are driven."""
        return Transmission(
            retry_deadline_s=self.speech.retry_deadline_s,
            link=self.link(),
        )

    def link(self) -> LinkSettings:
        """Return how any connection is written to."""
        return LinkSettings(
            send_deadline_s=self.connection.send_deadline_s,
            outbox_bytes=self.connection.outbox_bytes,
            outbox_frames=self.connection.outbox_frames,
            close_timeout_s=self.drain.close_timeout_s,
        )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
