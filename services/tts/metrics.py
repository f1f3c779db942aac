"""What the speech service measures.

Owns: the names and meanings of its metrics, which become `weir_tts_<name>`. Does not own: the
registry and its page (`services.runtime`), the places where values arise.
"""

from __future__ import annotations

from contracts.errors import Reason
from services.runtime.metrics import Metrics
from services.tts.admission import Admission

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 30.0)
_FACTORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0)
_REASONS = {"reason": [reason.value for reason in Reason]}


class TtsMetrics:
    """The metrics of one process. A method a kind of event; the gauges watch the admission."""

    def __init__(self, metrics: Metrics) -> None:
        self._slots = metrics.gauge("slots", "Synthesis slots there are.").of()
        self._busy = metrics.gauge("busy_slots", "Synthesis slots in use.").of()
        self._queued = metrics.gauge(
            "queued_requests", "Accepted segments waiting for a slot."
        ).of()
        self._refusals = metrics.counter(
            "refusals", "Segments refused before they were accepted, by reason.", _REASONS
        )
        self._failures = metrics.counter(
            "failures", "Segments that failed after they were accepted, by reason.", _REASONS
        )
        self.completions = metrics.counter("completions", "Segments spoken to the end.").of()
        self.cancellations = metrics.counter(
            "cancellations", "Accepted segments whose caller went away."
        ).of()
        self.first_audio_s = metrics.histogram(
            "time_to_first_audio_seconds",
            "From acceptance to the first bytes of audio, waiting for a slot included.",
            _SECONDS,
        ).of()
        self.queued_s = metrics.histogram(
            "queued_seconds", "From acceptance to a slot.", _SECONDS
        ).of()
        self.real_time_factor = metrics.histogram(
            "real_time_factor",
            "Time the model worked over the duration of the audio; above 1 it cannot keep up.",
            _FACTORS,
        ).of()
        self.audio_s = metrics.counter("audio_seconds", "Duration of the audio spoken.").of()
        self.wasted_audio_s = metrics.counter(
            "wasted_audio_seconds", "Duration of audio produced after its caller had gone."
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
        self._queued.set_function(lambda: admission.queued)

    def refused(self, reason: Reason) -> None:
        """Count a refusal."""
        self._refusals.of(reason=reason.value).inc()

    def failed(self, reason: Reason) -> None:
        """Count a failure after acceptance."""
        self._failures.of(reason=reason.value).inc()
