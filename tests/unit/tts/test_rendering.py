"""The chain from an adapter's samples to bytes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from contracts.errors import Reason, WeirError
from contracts.modality import AudioEncoding
from services.tts.adapters.base import Samples
from services.tts.planning import plan
from services.tts.rendering import Rendering, RenderingLimits
from tests.unit.tts.support import CAPABILITIES, RATE_HZ, segment, sine

LIMITS = RenderingLimits(chunk_ms=100, max_audio_s=10)


def _rendering(
    encoding: AudioEncoding = AudioEncoding.PCM,
    *,
    rate_hz: int = 0,
    speed: float = 1.0,
    limits: RenderingLimits = LIMITS,
) -> Rendering:
    request = segment(encoding, rate_hz=rate_hz, speed=speed)
    return Rendering(plan(request, CAPABILITIES, None), limits)


def _all(rendering: Rendering, *blocks: Samples) -> list[bytes]:
    chunks = [chunk for block in blocks for chunk in rendering.render(block)]
    return [*chunks, *rendering.finish()]


def test_a_raw_chunk_leaves_with_the_step_that_made_it() -> None:
    """WEIR-184: a short step is a chunk of its own; a long one is cut at the chunk's duration."""
    rendering = _rendering()
    assert [len(chunk) for chunk in rendering.render(sine(0.01))] == [480]
    assert [len(chunk) for chunk in rendering.render(sine(0.25))] == [4800, 4800, 2400]
    assert list(rendering.render(sine(0))) == []
    assert list(rendering.finish()) == []
    assert rendering.total_samples == 6240
    assert rendering.audio_ms == 260


def test_a_step_is_rendered_only_as_far_as_it_is_taken() -> None:
    """WEIR-193: what the reader does not take is not encoded, so that cancelling wastes little."""
    rendering = _rendering()
    chunks = rendering.render(sine(5))
    next(chunks)
    assert rendering.total_samples == 2400


@pytest.mark.parametrize("encoding", list(AudioEncoding))
@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("rate_hz", [8000, 48000])
def test_every_chain_keeps_the_duration(
    encoding: AudioEncoding, speed: float, rate_hz: int
) -> None:
    """WEIR-185, WEIR-186: stretched, resampled and encoded, the audio is as long as it must be."""
    rate_hz = 48000 if encoding is AudioEncoding.OPUS else rate_hz
    rendering = _rendering(encoding, rate_hz=rate_hz, speed=speed)
    data = b"".join(_all(rendering, *(sine(0.24) for _ in range(5))))
    assert abs(rendering.total_samples - 1.2 / speed * rate_hz) <= 1
    size = encoding.bytes_per_sample
    if size is not None:
        assert len(data) == rendering.total_samples * size
    else:
        decoded, rate = soundfile.read(io.BytesIO(data))
        assert (len(decoded), rate) == (rendering.total_samples, rate_hz)


@pytest.mark.parametrize("encoding", list(AudioEncoding))
def test_the_chain_of_a_text_without_sound_ends_well(encoding: AudioEncoding) -> None:
    """WEIR-184: no samples at all, or only empty ones, with every link in place."""
    for blocks in ([], [sine(0), sine(0)]):
        rendering = _rendering(encoding, rate_hz=48000, speed=2.0)
        data = b"".join(_all(rendering, *blocks))
        assert bool(data) != encoding.raw
        assert rendering.audio_ms <= 20


NOT_AUDIO: list[tuple[str, object]] = [
    ("a list", [0.0, 0.1]),
    ("integers", np.zeros(10, np.int16)),
    ("doubles", np.zeros(10, np.float64)),
    ("a matrix", np.zeros((10, 1), np.float32)),
    ("a scalar", np.float32(0)),
    ("nothing", None),
    ("not a number", np.array([0.0, np.nan, 0.0], np.float32)),
    ("infinite", np.array([0.0, np.inf], np.float32)),
    ("infinite below", np.array([-np.inf], np.float32)),
    ("16-bit scale", np.array([0.0, 12000.0], np.float32)),
]


@pytest.mark.parametrize(("name", "samples"), NOT_AUDIO, ids=[name for name, _ in NOT_AUDIO])
def test_what_is_not_audio_fails_the_segment(name: str, samples: Samples) -> None:
    """WEIR-187: a broken model is told apart from a loud one, and none of it is sent."""
    rendering = _rendering()
    with pytest.raises(WeirError) as raised:
        list(rendering.render(samples))
    assert raised.value.failure.reason is Reason.SEGMENT_FAILED
    assert rendering.total_samples == 0


def test_a_loud_model_is_clipped_and_not_refused() -> None:
    """WEIR-187: an overshoot is normal for vocoders."""
    (chunk,) = _rendering().render(np.full(10, 1.2, np.float32))
    assert np.frombuffer(chunk, "<i2").tolist() == [32767] * 10


@pytest.mark.parametrize(("speed", "accepted_s"), [(1.0, 10.0), (0.5, 5.0), (2.0, 20.0)])
def test_a_segment_has_a_greatest_duration_as_it_is_heard(speed: float, accepted_s: float) -> None:
    """WEIR-188: a model that never stops is stopped, at the bound and not before."""
    rendering = _rendering(speed=speed)
    list(rendering.render(np.zeros(round(accepted_s * RATE_HZ), np.float32)))
    with pytest.raises(WeirError) as raised:
        list(rendering.render(np.zeros(1, np.float32)))
    assert raised.value.failure.reason is Reason.SEGMENT_FAILED
