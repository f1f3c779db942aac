"""Every adapter of `cases` held to every check of `suite`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.tts.adapters.base import VoiceAdapter
from tests.conformance.adapters import suite
from tests.conformance.adapters.cases import CASES, AdapterCase

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")


@pytest.fixture(scope="module", params=[case.parameter for case in CASES])
def case(request: pytest.FixtureRequest) -> AdapterCase:
    """One adapter; skipped with a reason where it cannot be loaded."""
    chosen: AdapterCase = request.param
    chosen.skip_unless_possible()
    return chosen


@pytest.fixture(scope="module")
def adapter(case: AdapterCase) -> Iterator[VoiceAdapter]:
    """The adapter, loaded once for the module."""
    made = case.make()
    made.load()
    yield made
    made.close()


def test_the_capabilities_are_consistent(adapter: VoiceAdapter) -> None:
    """WEIR-130: what is declared does not contradict itself."""
    suite.check_capabilities(adapter)


def test_segments_of_a_commitment_profile_are_independent(adapter: VoiceAdapter) -> None:
    """IO-INV-102: what was spoken before changes nothing."""
    suite.check_commitment(adapter)


def test_every_language_is_heard_step_by_step(adapter: VoiceAdapter) -> None:
    """WEIR-330: float32, mono, within -1 to 1, not silent, streamed where that is declared."""
    suite.check_audible(adapter)


def test_every_voice_speaks(adapter: VoiceAdapter) -> None:
    """WEIR-330: no voice is declared that is not there."""
    suite.check_voices(adapter)


def test_length_follows_speed(adapter: VoiceAdapter) -> None:
    """WEIR-110: the native range is honest at both of its ends."""
    suite.check_speed(adapter)


def test_a_seed_reproduces(adapter: VoiceAdapter) -> None:
    """WEIR-331: the same request with the same seed gives the same bytes."""
    suite.check_seed(adapter)


def test_text_without_phonemes_gives_empty_audio(adapter: VoiceAdapter) -> None:
    """WEIR-327: punctuation, emoji and white space are no error."""
    suite.check_soundless(adapter)


def test_no_text_is_a_crash(adapter: VoiceAdapter) -> None:
    """WEIR-332: any Unicode is spoken or passed over."""
    suite.check_odd(adapter)


def test_the_longest_text_starts_at_once(adapter: VoiceAdapter) -> None:
    """WEIR-324: the first step does not wait for the whole text."""
    suite.check_long(adapter)


def test_every_spoken_word_has_its_time(adapter: VoiceAdapter) -> None:
    """IO-INV-102: words of the raw text, in order, inside the audio, at every native speed."""
    suite.check_word_times(adapter)


def test_closing_between_steps_frees_everything(adapter: VoiceAdapter) -> None:
    """WEIR-333: a cancelled utterance leaves nothing behind."""
    suite.check_cancellation(adapter)


def test_the_declared_concurrency_is_real(adapter: VoiceAdapter) -> None:
    """WEIR-334: utterances side by side do not hear one another."""
    suite.check_concurrency(adapter)


def test_load_and_close_come_in_any_order(case: AdapterCase) -> None:
    """WEIR-335: before load nothing is known, after close nothing is spoken."""
    suite.check_life(case.make(), case.make())
