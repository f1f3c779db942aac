"""The one replica that tests of this folder share; nothing here ends it or holds its slots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.edge.suite import run_once, shared_processes, start_tts
from tests.processes import ServiceProcess


@pytest.fixture(scope="module")
def tone_process(request: pytest.FixtureRequest) -> Iterator[ServiceProcess]:
    """A replica that speaks at once."""
    with shared_processes(show=lambda: request.session.testsfailed > 0) as start:
        yield run_once(start_tts(start))
