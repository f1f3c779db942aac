"""Measurements of one process, with label sets that cannot grow.

Owns: the registry of a process and families whose label values are all known beforehand. Does not
own: what is measured, or how it is read (`admin`). Enforces: WEIR-072 (nothing a client sends can
make a new time series).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

Labels = Mapping[str, Sequence[str]]
"""Every label with all the values it can have."""

OTHER = "other"
"""Stands for every value that was not declared."""
MAX_SERIES = 200
"""Greatest count of time series in one family."""

Kind = TypeVar("Kind", Counter, Gauge, Histogram)


class Family(Generic[Kind]):
    """The time series of one measurement, one for each combination of label values.

    They all exist from the start, so that a rate is 0 and not absent before the first event.
    """

    def __init__(self, metric: Kind, labels: Labels) -> None:
        self._names = tuple(labels)
        self._values = tuple(frozenset(values) | {OTHER} for values in labels.values())
        declared = itertools.product(*labels.values())
        self._series: dict[tuple[str, ...], Kind] = {
            values: metric.labels(*values) if values else metric for values in declared
        }
        self._metric: Kind = metric

    def of(self, **labels: str) -> Kind:
        """Return the time series of these labels; a value that was not declared counts as `other`.

        Raises ValueError when the label names are not the declared ones: a mistake of the caller.
        """
        if labels.keys() != set(self._names):
            raise ValueError(f"the labels are {', '.join(self._names) or 'none'}")
        # WEIR-072: bounded, whatever the value is.
        key = tuple(
            labels[name] if labels[name] in known else OTHER
            for name, known in zip(self._names, self._values, strict=True)
        )
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = self._metric.labels(*key)
        return series


class Metrics:
    """The registry of one process. Names become `weir_<service>_<name>`.

    Names end in their unit (`_seconds`, `_bytes`); counters get `_total` from the library.
    """

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        self._service = service
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def counter(self, name: str, doc: str, labels: Labels | None = None) -> Family[Counter]:
        """Return a family of counters: `.of(outcome="ok").inc()`."""
        known = _checked(labels)
        return Family(Counter(self._name(name), doc, tuple(known), registry=self.registry), known)

    def gauge(self, name: str, doc: str, labels: Labels | None = None) -> Family[Gauge]:
        """Return a family of gauges: `.of().set(3)`."""
        known = _checked(labels)
        return Family(Gauge(self._name(name), doc, tuple(known), registry=self.registry), known)

    def histogram(
        self, name: str, doc: str, buckets: Sequence[float], labels: Labels | None = None
    ) -> Family[Histogram]:
        """Return a family of histograms with these upper bounds: `.of().observe(0.2)`."""
        known = _checked(labels)
        metric = Histogram(
            self._name(name), doc, tuple(known), registry=self.registry, buckets=buckets
        )
        return Family(metric, known)

    def _name(self, name: str) -> str:
        return f"weir_{self._service}_{name}"


def _checked(labels: Labels | None) -> Labels:
    known = dict(labels or {})
    series = 1
    for values in known.values():
        series *= len(set(values) | {OTHER})
    if series > MAX_SERIES:
        raise ValueError(f"{series} time series in one family; at most {MAX_SERIES} are allowed")
    return known
