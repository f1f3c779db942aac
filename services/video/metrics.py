"""What the video service measures.

Owns: the names and meanings of its metrics, which become `weir_video_<name>`. Does not own: the
registry and its page (`services.runtime`), the places where values arise.
"""

from __future__ import annotations

from contracts.errors import Reason
from services.runtime.metrics import Metrics
from services.video.admission import Admission

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 30.0, 60.0)
_FACTORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0)
_REASONS = {"reason": [reason.value for reason in Reason]}


class VideoMetrics:
    """The metrics of one process. A method a kind of event; the gauges watch the admission."""

    def __init__(self, metrics: Metrics) -> None:
        self._slots = metrics.gauge("slots", "Generation slots there are.").of()
        self._busy = metrics.gauge("busy_sessions", "Generation slots in use.").of()
        self._refusals = metrics.counter(
            "refusals", "Generations refused before they were accepted, by reason.", _REASONS
        )
        self._failures = metrics.counter(
            "failures", "Generations that failed after they were accepted, by reason.", _REASONS
        )
        self.completions = metrics.counter(
            "completions", "Generations that ended well, stopped ones included."
        ).of()
        self.cancellations = metrics.counter(
            "cancellations", "Accepted generations whose caller went away."
        ).of()
        self.first_frame_s = metrics.histogram(
            "time_to_first_frame_seconds",
            "From a request to the first chunk that could be sent.",
            _SECONDS,
        ).of()
        self.generation_s = metrics.histogram(
            "chunk_generation_seconds", "Time the model took for one chunk.", _SECONDS
        ).of()
        self.rendering_s = metrics.histogram(
            "chunk_rendering_seconds",
            "Time that decoding and encoding took for one chunk.",
            _SECONDS,
        ).of()
        self.real_time_factor = metrics.histogram(
            "real_time_factor",
            "Time the model took for a chunk over the duration of it; above 1 it cannot keep up.",
            _FACTORS,
        ).of()
        self.video_s = metrics.counter("video_seconds", "Duration of the video made.").of()
        self.wasted_s = metrics.counter(
            "wasted_generation_seconds", "Time the model took for chunks that nobody got."
        ).of()
        self.cancel_latency_s = metrics.histogram(
            "cancel_latency_seconds",
            "From a cancellation to the moment the model has stopped and the slot is free.",
            _SECONDS,
        ).of()

    def watch(self, admission: Admission) -> None:
        """Read the gauges from `admission` whenever they are asked for."""
        self._slots.set(admission.slots)
        self._busy.set_function(lambda: admission.busy)

    def chunk_made(
        self, index: int, generation_s: float, rendering_s: float, duration_s: float, age_s: float
    ) -> None:
        """Measure one chunk that is ready; `age_s` is that of its generation."""
        if index == 0:
            self.first_frame_s.observe(age_s)
        self.generation_s.observe(generation_s)
        self.rendering_s.observe(rendering_s)
        self.real_time_factor.observe(generation_s / duration_s)
        self.video_s.inc(duration_s)

    def refused(self, reason: Reason) -> None:
        """Count a refusal."""
        self._refusals.of(reason=reason.value).inc()

    def failed(self, reason: Reason) -> None:
        """Count a failure after acceptance."""
        self._failures.of(reason=reason.value).inc()
