"""Word times on the time line of the audio that was sent."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.modality import WordTime
from services.tts.adapters.base import Word
from services.tts.timing import word_times

SECONDS = st.floats(-10, 100, allow_nan=False)


def test_words_are_milliseconds_of_the_audio_that_is_heard() -> None:
    """WEIR-189: a stretched segment has its words where they are heard."""
    words = (Word("one", 0.0, 0.5), Word("two", 0.7504, 1.5))
    assert word_times(words, 1.0, 2000) == (WordTime("one", 0, 500), WordTime("two", 750, 1500))
    assert word_times(words, 2.0, 1000) == (WordTime("one", 0, 250), WordTime("two", 375, 750))
    assert word_times(words, 0.5, 4000) == (WordTime("one", 0, 1000), WordTime("two", 1501, 3000))


@given(
    st.lists(st.tuples(SECONDS, SECONDS), max_size=20),
    st.floats(0.25, 4.0),
    st.integers(0, 60_000),
)
def test_words_are_always_inside_in_order_and_apart(
    spans: list[tuple[float, float]], stretch: float, audio_ms: int
) -> None:
    """WEIR-189: whatever an aligner says; no word is lost and none is made up."""
    words = tuple(Word(str(index), start, end) for index, (start, end) in enumerate(spans))
    placed = word_times(words, stretch, audio_ms)
    assert [word.word for word in placed] == [word.text for word in words]
    edges = [edge for word in placed for edge in (word.start_ms, word.end_ms)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= audio_ms for edge in edges)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_times_that_are_no_numbers_are_refused(bad: float) -> None:
    """WEIR-189: an aligner that failed is not rounded into one that worked."""
    for word in (Word("a", bad, 1.0), Word("a", 0.0, bad)):
        with pytest.raises(ValueError, match="finite"):
            word_times((word,), 1.0, 1000)
