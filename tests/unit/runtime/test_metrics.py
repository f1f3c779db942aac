"""Measurements cannot grow with what clients send."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from services.runtime.metrics import MAX_SERIES, Metrics


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_every_declared_series_exists_from_the_start() -> None:
    """WEIR-072: a rate is 0 before the first event, not absent."""
    metrics = Metrics("tts")
    metrics.counter("calls", "Calls.", {"outcome": ("ok", "failed")})
    assert sample(metrics, "weir_tts_calls_total", outcome="ok") == 0
    assert sample(metrics, "weir_tts_calls_total", outcome="failed") == 0


def test_each_kind_measures() -> None:
    """WEIR-072: counters, gauges and histograms carry their names with the service's prefix."""
    metrics = Metrics("edge")
    metrics.counter("calls", "Calls.").of().inc(2)
    metrics.gauge("queue_depth", "Waiting.", {"kind": ("speech",)}).of(kind="speech").set(3)
    delays = metrics.histogram("delay_seconds", "Delay.", (0.1, 1.0))
    delays.of().observe(0.5)
    assert sample(metrics, "weir_edge_calls_total") == 2
    assert sample(metrics, "weir_edge_queue_depth", kind="speech") == 3
    assert sample(metrics, "weir_edge_delay_seconds_bucket", le="0.1") == 0
    assert sample(metrics, "weir_edge_delay_seconds_bucket", le="1.0") == 1


def test_a_value_that_was_not_declared_counts_as_other() -> None:
    """WEIR-072: a thousand foreign values make one more series."""
    metrics = Metrics("tts")
    calls = metrics.counter("calls", "Calls.", {"model": ("a",), "outcome": ("ok", "failed")})
    for index in range(1000):
        calls.of(model=f"foreign{index}", outcome="ok").inc()
    assert sample(metrics, "weir_tts_calls_total", model="other", outcome="ok") == 1000
    lines = generate_latest(metrics.registry).decode().splitlines()
    assert len([line for line in lines if line.startswith("weir_tts_calls_total{")]) == 3


@pytest.mark.parametrize("labels", [{}, {"outcome": "ok"}, {"model": "a", "other": "b"}])
def test_wrong_label_names_are_a_mistake_of_ours(labels: dict[str, str]) -> None:
    """WEIR-072: label names are fixed at the declaration."""
    calls = Metrics("tts").counter("calls", "Calls.", {"model": ("a",), "outcome": ("ok",)})
    with pytest.raises(ValueError, match="the labels are model, outcome"):
        calls.of(**labels)


def test_a_family_has_a_bounded_count_of_series() -> None:
    """WEIR-072: the product of all label values is bounded at the declaration."""
    values = [f"v{index}" for index in range(MAX_SERIES)]
    metrics = Metrics("tts")
    metrics.gauge("good", "Good.", {"label": values[1:]})
    with pytest.raises(ValueError, match="at most 200"):
        metrics.gauge("bad", "Bad.", {"label": values})


def test_a_process_tells_about_itself() -> None:
    """WEIR-072: memory, open files and garbage collection are always measured."""
    metrics = Metrics("tts")
    resident = sample(metrics, "process_resident_memory_bytes")
    assert resident is not None
    assert resident > 1_000_000
