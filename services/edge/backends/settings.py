"""What an operator can set about the backends.

Owns: the limits of the edge's way to its replicas. Does not own: reading the environment, the
connections' own options (`services.runtime.transport`), or the retry rules themselves (`tts`).
"""

from __future__ import annotations

from dataclasses import dataclass

from services.edge.backends.retry import Backoff
from services.edge.backends.targets import Target, parse_targets
from services.runtime.settings import setting


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How the edge follows the replicas of any backend and comes back to those that fail."""

    refresh_interval_s: float = setting(
        "EDGE_BACKEND_REFRESH_INTERVAL_S",
        2.0,
        "Time between two looks at the capabilities of a reachable replica.",
        unit="s",
        minimum=0.01,
    )
    probe_timeout_s: float = setting(
        "EDGE_BACKEND_PROBE_TIMEOUT_S",
        5.0,
        "Time in which a replica must tell its capabilities, or the name service an address.",
        unit="s",
        minimum=0.01,
    )
    probe_spacing_s: float = setting(
        "EDGE_BACKEND_PROBE_SPACING_S",
        0.1,
        "Least time between two looks at one replica, however many requests fail at it.",
        unit="s",
        minimum=0.001,
    )
    probe_backoff_first_s: float = setting(
        "EDGE_BACKEND_PROBE_BACKOFF_FIRST_S",
        0.2,
        "Wait after the first look that fails; doubled with each further one.",
        unit="s",
        minimum=0.001,
    )
    probe_backoff_most_s: float = setting(
        "EDGE_BACKEND_PROBE_BACKOFF_MOST_S",
        2.0,
        "Longest wait between two looks at a replica that is away.",
        unit="s",
        minimum=0.001,
    )
    resolve_interval_s: float = setting(
        "EDGE_BACKEND_RESOLVE_INTERVAL_S",
        10.0,
        "Time between two look-ups of a name.",
        unit="s",
        minimum=0.01,
    )
    outlier_backoff_first_s: float = setting(
        "EDGE_BACKEND_OUTLIER_BACKOFF_FIRST_S",
        0.1,
        "How long others are preferred to a replica that failed once; doubled with each failure in "
        "a row.",
        unit="s",
        minimum=0.001,
    )
    outlier_backoff_most_s: float = setting(
        "EDGE_BACKEND_OUTLIER_BACKOFF_MOST_S",
        10.0,
        "The longest that others are preferred to a replica that keeps failing.",
        unit="s",
        minimum=0.001,
    )
    retry_after_most_s: float = setting(
        "EDGE_BACKEND_RETRY_AFTER_MOST_S",
        5.0,
        "The longest wait that a replica can ask for when it refuses.",
        unit="s",
        minimum=0.0,
    )

    def __post_init__(self) -> None:
        _ = self.probe_backoff, self.outlier_backoff  # each refuses its own contradictions

    @property
    def probe_backoff(self) -> Backoff:
        """Waits between looks that fail."""
        return Backoff(self.probe_backoff_first_s, self.probe_backoff_most_s)

    @property
    def outlier_backoff(self) -> Backoff:
        """How long a failing replica comes last."""
        return Backoff(self.outlier_backoff_first_s, self.outlier_backoff_most_s)


@dataclass(frozen=True, slots=True)
class TtsBackendSettings:
    """Where the TTS replicas are, and how long one attempt at a segment may take."""

    targets: tuple[str, ...] = setting(
        "EDGE_TTS_TARGETS",
        ("127.0.0.1:50051",),
        "TTS replicas: host:port, separated by commas. An address is one replica; a name stands "
        "for every address it resolves to.",
    )
    accept_timeout_s: float = setting(
        "EDGE_TTS_ACCEPT_TIMEOUT_S",
        10.0,
        "Silence before a replica accepts a segment, after which it counts as lost.",
        unit="s",
        minimum=0.01,
    )
    stall_timeout_s: float = setting(
        "EDGE_TTS_STALL_TIMEOUT_S",
        120.0,
        "Silence after a replica accepted a segment, its queue included, after which the segment "
        "fails.",
        unit="s",
        minimum=0.01,
    )
    retry_backoff_first_s: float = setting(
        "EDGE_TTS_RETRY_BACKOFF_FIRST_S",
        0.05,
        "Wait before the second attempt at a segment; doubled with each further one.",
        unit="s",
        minimum=0.001,
    )
    retry_backoff_most_s: float = setting(
        "EDGE_TTS_RETRY_BACKOFF_MOST_S",
        2.0,
        "Longest wait between two attempts at a segment, unless a replica asks for more.",
        unit="s",
        minimum=0.001,
    )
    retries_after_accept: int = setting(
        "EDGE_TTS_RETRIES_AFTER_ACCEPT",
        1,
        "Further attempts at a segment that was accepted but gave nothing, where the adapter "
        "declares that failed segments may be tried again.",
        minimum=0,
    )

    def __post_init__(self) -> None:
        _ = self.retry_backoff  # refuses its own contradictions
        try:
            _ = self.parsed_targets
        except ValueError as error:
            raise ValueError(f"EDGE_TTS_TARGETS: {error}") from None

    @property
    def parsed_targets(self) -> tuple[Target, ...]:
        """The targets, read."""
        return parse_targets(self.targets)

    @property
    def retry_backoff(self) -> Backoff:
        """Waits between attempts."""
        return Backoff(self.retry_backoff_first_s, self.retry_backoff_most_s)


@dataclass(frozen=True, slots=True)
class VideoBackendSettings:
    """Where the video replicas are, and how long the search for one may take."""

    targets: tuple[str, ...] = setting(
        "EDGE_VIDEO_TARGETS",
        ("127.0.0.1:50052",),
        "Video replicas: host:port, separated by commas, as for EDGE_TTS_TARGETS. While none can "
        "be reached the video endpoint says so and speech is served all the same.",
    )
    accept_deadline_s: float = setting(
        "EDGE_VIDEO_ACCEPT_DEADLINE_S",
        5.0,
        "Time in which a replica must accept a generation, all attempts together.",
        unit="s",
        minimum=0.05,
    )
    retry_backoff_first_s: float = setting(
        "EDGE_VIDEO_RETRY_BACKOFF_FIRST_S",
        0.05,
        "Wait before the second replica is asked; doubled with each further one.",
        unit="s",
        minimum=0.001,
    )
    retry_backoff_most_s: float = setting(
        "EDGE_VIDEO_RETRY_BACKOFF_MOST_S",
        1.0,
        "Longest wait between two attempts, unless a replica asks for more.",
        unit="s",
        minimum=0.001,
    )

    def __post_init__(self) -> None:
        _ = self.parsed_targets, self.retry_backoff  # each refuses its own contradictions

    @property
    def parsed_targets(self) -> tuple[Target, ...]:
        """The targets, read."""
        return parse_targets(self.targets)

    @property
    def retry_backoff(self) -> Backoff:
        """Waits between attempts."""
        return Backoff(self.retry_backoff_first_s, self.retry_backoff_most_s)
