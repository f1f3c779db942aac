"""Processes that the tests of this folder share; tests that end or strain one start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.edge.suite import run_once, shared_processes
from tests.integration.edge_video.suite import start_video, start_video_edge
from tests.processes import ServiceProcess, StartProcess


@pytest.fixture(scope="module")
def start_shared(request: pytest.FixtureRequest) -> Iterator[StartProcess]:
    """Start a process that ends with the tests of one file."""
    with shared_processes(show=lambda: request.session.testsfailed > 0) as start:
        yield start


@pytest.fixture(scope="module")
def replica(start_shared: StartProcess) -> ServiceProcess:
    """A replica that takes 40 ms for a chunk; a prompt with `unreadable` in it fails."""
    options = "step_time_s=0.01,fail_marker=unreadable"
    return run_once(start_video(start_shared, options, VIDEO_MAX_SESSIONS="8"))


@pytest.fixture(scope="module")
def edge(start_shared: StartProcess, replica: ServiceProcess) -> str:
    """The `host:port` of an edge in front of `replica`."""
    return run_once(start_video_edge(start_shared, replica)).address
