"""The ranges of a segment request, tried on both sides of each limit."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import pytest

from contracts.identity import SegmentIdentity
from contracts.modality import SAMPLE_RATES_HZ, AudioEncoding, AudioFormat, TextSpan
from contracts.speech import (
    INT64_MAX,
    INT64_MIN,
    MAX_SPEAKER_EMBEDDING,
    SegmentRequest,
    SynthesisOptions,
    VoiceOptions,
)

REQUEST = SegmentRequest(
    SegmentIdentity("s", "r", 0, 0), " Hello.", AudioFormat(AudioEncoding.PCM, 0)
)


@pytest.mark.parametrize(
    "options",
    [
        {"speed": 0.25},
        {"speed": 4.0},
        {"seed": INT64_MIN},
        {"seed": INT64_MAX},
        {"seed": 0},
        {"max_new_tokens": 1},
        {"initial_codec_chunk_frames": 1},
        {"non_streaming_mode": False},
        {},
    ],
)
def test_options_within_their_ranges_are_accepted(options: dict[str, Any]) -> None:
    """WEIR-110: limits belong to the range."""
    made = SynthesisOptions(**options)
    for name, value in options.items():
        assert getattr(made, name) == value


@pytest.mark.parametrize(
    "options",
    [
        {"speed": 0.2499},
        {"speed": 4.001},
        {"speed": 0.0},
        {"speed": -1.0},
        {"speed": math.nan},
        {"speed": math.inf},
        {"seed": INT64_MIN - 1},
        {"seed": INT64_MAX + 1},
        {"max_new_tokens": 0},
        {"initial_codec_chunk_frames": 0},
    ],
)
def test_options_outside_their_ranges_are_refused(options: dict[str, Any]) -> None:
    """WEIR-110: the error names the option."""
    with pytest.raises(ValueError, match=next(iter(options))):
        SynthesisOptions(**options)


def test_an_embedding_has_a_greatest_length() -> None:
    """WEIR-110: nothing is unbounded."""
    assert VoiceOptions(speaker_embedding=(0.5,) * MAX_SPEAKER_EMBEDDING)
    with pytest.raises(ValueError, match="speaker_embedding"):
        VoiceOptions(speaker_embedding=(0.5,) * (MAX_SPEAKER_EMBEDDING + 1))


@pytest.mark.parametrize("rate", [0, *SAMPLE_RATES_HZ])
def test_the_listed_rates_can_be_asked_for(rate: int) -> None:
    """WEIR-110: 0 leaves the choice to the encoding."""
    made = replace(REQUEST, output=AudioFormat(AudioEncoding.PCM, rate))
    assert made.output.sample_rate_hz == rate


@pytest.mark.parametrize(
    "output",
    [
        AudioFormat(AudioEncoding.PCM, 1),
        AudioFormat(AudioEncoding.WAV, 96000),
        AudioFormat(AudioEncoding.OPUS, 24000),
    ],
)
def test_other_rates_are_refused(output: AudioFormat) -> None:
    """WEIR-110: Opus has one rate."""
    with pytest.raises(ValueError, match="sample_rate_hz"):
        replace(REQUEST, output=output)


def test_text_is_never_empty_and_spans_are_its_partition() -> None:
    """IO-INV-102: what the spans say is the text, to the code point."""
    spans = (TextSpan(" ", "natural"), TextSpan("Hello.", "lexical"))
    assert replace(REQUEST, spans=spans).spans == spans
    with pytest.raises(ValueError, match="at least one code point"):
        replace(REQUEST, text="")
    for wrong in (spans[1:], spans[::-1], (*spans, TextSpan("!", "special"))):
        with pytest.raises(ValueError, match="spans"):
            replace(REQUEST, spans=wrong)


def test_a_request_cannot_be_changed_and_keeps_its_text_as_it_is() -> None:
    """IO-INV-102: leading white space is source like any other."""
    assert REQUEST.text == " Hello."
    with pytest.raises(dataclasses.FrozenInstanceError):
        REQUEST.text = "Hello."  # type: ignore[misc]  # what the test is about
