"""Every adapter of `cases` held to every check of `suite`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.video.adapters.base import VideoAdapter
from tests.conformance.video_adapters import suite
from tests.conformance.video_adapters.cases import CASES, AdapterCase
from tests.conformance.video_adapters.tiny import LIBRARY_WARNINGS
from tests.conformance.video_adapters.torch_threads import one_torch_thread

Adapter = VideoAdapter[Any, Any, Any]

pytestmark = LIBRARY_WARNINGS


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> AdapterCase:
    """One adapter; skipped with a reason where it cannot be loaded."""
    chosen: AdapterCase = request.param
    chosen.skip_unless_possible()
    return chosen


@pytest.fixture(scope="module")
def adapter(case: AdapterCase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    """The adapter, loaded once for the module."""
    with one_torch_thread():
        made = case.make(tmp_path_factory.mktemp("checkpoint"))
        suite.check_unloaded(made)
        made.load()
        yield made
        made.unload()


def test_the_capabilities_are_consistent(adapter: Adapter) -> None:
    """WEIR-148: what is declared does not contradict itself."""
    suite.check_capabilities(adapter)


def test_every_chunk_has_the_declared_frames(adapter: Adapter) -> None:
    """WEIR-351: count, size and type of the frames are those that were declared."""
    suite.check_shapes(adapter)


def test_a_bounded_video_ends_where_it_says(adapter: Adapter) -> None:
    """WEIR-358: all frames up to the maximum, and an error for more."""
    suite.check_length(adapter)


def test_a_seed_reproduces(adapter: Adapter) -> None:
    """WEIR-352: the same request with the same seed gives the same frames; every seed is taken."""
    suite.check_seed(adapter)


def test_frames_follow_the_prompt(adapter: Adapter) -> None:
    """WEIR-353: a new prompt shows from the chunk on that is generated with it."""
    suite.check_prompts(adapter)


def test_a_blend_leads_from_one_prompt_to_the_other(adapter: Adapter, case: AdapterCase) -> None:
    """WEIR-353: near the ends it is nearly they, in the middle half of both."""
    suite.check_blend(adapter, case)


def test_a_blend_generates(adapter: Adapter) -> None:
    """WEIR-353: what is mixed is a prompt state like any other."""
    suite.check_blended_frames(adapter)


def test_a_stopped_chunk_never_was(adapter: Adapter) -> None:
    """WEIR-357: stopped between any two steps, the state is as before."""
    suite.check_stopping(adapter)


def test_it_asks_between_any_two_steps(adapter: Adapter) -> None:
    """WEIR-357: so that a cancelled generation runs one step longer at most."""
    suite.check_asking(adapter)


def test_generations_do_not_touch_one_another(adapter: Adapter) -> None:
    """WEIR-352: taking turns changes no frame."""
    suite.check_sessions(adapter)


def test_memory_is_constant_and_given_back(adapter: Adapter) -> None:
    """WEIR-352: no growth from chunk to chunk, nothing left after close."""
    suite.check_memory(adapter)


def test_wrong_parameters_are_refused(adapter: Adapter, case: AdapterCase) -> None:
    """WEIR-354: by their names, before anything is generated."""
    suite.check_refusals(adapter, case)


def test_a_picture_is_used(adapter: Adapter) -> None:
    """WEIR-351: an image reference that is declared has an effect, and reproducibly."""
    suite.check_picture(adapter)
