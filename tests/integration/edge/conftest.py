"""Processes that the tests of this folder share; tests that end or strain one start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.edge.suite import run_once, shared_processes, start_edge, start_tts
from tests.processes import ServiceProcess, StartProcess

FAULT = "faulty"
"""A text with this word fails after two steps of 240 ms."""


@pytest.fixture(scope="session")
def start_shared(request: pytest.FixtureRequest) -> Iterator[StartProcess]:
    """Start a process that ends with the test session."""
    with shared_processes(show=lambda: request.session.testsfailed > 0) as start:
        yield start


@pytest.fixture(scope="session")
def tone(start_shared: StartProcess) -> ServiceProcess:
    """A replica that speaks at once, and fails where a text says so."""
    options = f"fail_marker={FAULT},fail_after_steps=2"
    return run_once(start_tts(start_shared, options, TTS_SLOTS="8"))


@pytest.fixture(scope="session")
def slow_tone(start_shared: StartProcess) -> ServiceProcess:
    """A replica that takes 50 ms for 60 ms of audio, one character a step."""
    return run_once(start_tts(start_shared, "step_ms=60,step_time_s=0.05", TTS_SLOTS="4"))


@pytest.fixture(scope="session")
def edge_process(start_shared: StartProcess, tone: ServiceProcess) -> ServiceProcess:
    """An edge with default limits in front of `tone`."""
    return run_once(start_edge(start_shared, tone))


@pytest.fixture(scope="session")
def edge(edge_process: ServiceProcess) -> str:
    """Its `host:port`."""
    return edge_process.address


@pytest.fixture(scope="session")
def slow_edge(start_shared: StartProcess, slow_tone: ServiceProcess) -> str:
    """The `host:port` of an edge in front of `slow_tone`."""
    return run_once(start_edge(start_shared, slow_tone)).address
