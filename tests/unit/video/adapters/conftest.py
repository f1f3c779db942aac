"""Tiny checkpoints, saved once, and one torch thread for the tests of the diffusion adapters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.video_adapters import tiny
from tests.conformance.video_adapters.torch_threads import one_torch_thread


@pytest.fixture(scope="session")
def helios_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A distilled Helios checkpoint. Read only."""
    _skip_unless_possible()
    with one_torch_thread():
        yield tiny.save_helios(tmp_path_factory.mktemp("helios"))


@pytest.fixture(scope="session")
def far_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An AnyFlow-FAR checkpoint. Read only."""
    _skip_unless_possible()
    with one_torch_thread():
        yield tiny.save_anyflow_far(tmp_path_factory.mktemp("far"))


def _skip_unless_possible() -> None:
    reason = tiny.lacking()
    if reason is not None:
        pytest.skip(reason)
