"""The stream as its owner sees it: order, times, offsets, and what an error leaves behind."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from services.video.media import codecs
from services.video.media.codecs import CODECS, Codec
from services.video.media.encoder import ChunkEncoder, EncoderError
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.initialization import SampleDescription
from tests.unit.video.media.colours import moving
from tests.unit.video.media.parsing import boxes, fragments, random_access

VIDEO = VideoFormat(96, 64, 24)
SIZES = (1, 9, 12, 2, 5)


def chunk(count: int = 3) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Pictures of the test's size."""
    return moving(count, VIDEO.width, VIDEO.height)


def offer(monkeypatch: pytest.MonkeyPatch, codec: Codec) -> None:
    """Put a codec into the table under the name `faulty`."""
    monkeypatch.setattr(codecs, "CODECS", {**CODECS, "faulty": codec})


@pytest.mark.parametrize("codec", CODECS)
def test_a_payload_is_one_fragment_and_the_first_has_the_initialization_in_front(
    codec: str,
) -> None:
    """WEIR-197: known before any chunk, sent once."""
    encoder = ChunkEncoder(VIDEO, codec=codec)
    kinds = [[box.kind for box in boxes(encoder.encode(chunk(n)).data)] for n in SIZES]
    assert kinds == [[b"ftyp", b"moov", b"moof", b"mdat"], *[[b"moof", b"mdat"]] * 4]
    encoder = ChunkEncoder(VIDEO, codec=codec)
    before = encoder.initialization
    assert encoder.encode(chunk()).data.startswith(before)
    assert encoder.initialization == before


@pytest.mark.parametrize("codec", CODECS)
def test_every_frame_is_one_sample_and_only_the_first_of_a_chunk_is_a_key(codec: str) -> None:
    """WEIR-196: counts, and places to start, chunk by chunk."""
    encoder = ChunkEncoder(VIDEO, codec=codec)
    data = b"".join(encoder.encode(chunk(n)).data for n in SIZES)
    keys = [[sample.is_key for sample in fragment.samples] for fragment in fragments(data)]
    assert keys == [[True] + [False] * (n - 1) for n in SIZES]


@pytest.mark.parametrize("fps", [1, 24, 60, Fraction(30_000, 1_001)])
def test_time_goes_on_from_chunk_to_chunk_exactly(fps: int | Fraction) -> None:
    """WEIR-198: no gap, no overlap, nothing rounded; the seconds are the ticks."""
    video = VideoFormat(96, 64, fps)
    encoder = ChunkEncoder(video)
    frames = 0
    for number, count in enumerate(SIZES * 3, start=1):
        assert encoder.num_frames == frames
        assert encoder.pts_seconds == float(frames / Fraction(fps))
        payload = encoder.encode(chunk(count))
        assert (payload.num_frames, payload.pts_seconds) == (count, float(frames / Fraction(fps)))
        assert payload.duration_seconds == float(count / Fraction(fps))
        (fragment,) = fragments(payload.data)
        assert fragment.sequence == number
        for index, sample in enumerate(fragment.samples, start=frames):
            assert Fraction(sample.start, video.timescale) == index / Fraction(fps)
            assert Fraction(sample.duration, video.timescale) == 1 / Fraction(fps)
        frames += count


def test_the_trailer_names_every_chunk_where_it_lies_in_the_saved_stream() -> None:
    """WEIR-197: at each offset there is the fragment of that time."""
    encoder = ChunkEncoder(VIDEO)
    data = b"".join(encoder.encode(chunk(n)).data for n in SIZES) + encoder.trailer()
    places = random_access(data)
    assert [(place.time, place.offset) for place in places] == [
        (fragment.start, fragment.offset) for fragment in fragments(data)
    ]
    assert len(places) == len(SIZES)
    assert {place.numbers for place in places} == {(1, 1, 1)}
    assert [box.kind for box in boxes(data)][-1] == b"mfra"


@pytest.mark.parametrize(
    ("codec", "mime_type"),
    [
        ("h264", 'video/mp4; codecs="avc1.42c01f"'),
        ("vp9", 'video/mp4; codecs="vp09.00.31.08.00.01.01.01.00"'),
        ("av1", 'video/mp4; codecs="av01.0.00M.08.0.110.01.01.01.0"'),
    ],
)
def test_the_codec_is_announced_as_it_stands_in_the_stream(codec: str, mime_type: str) -> None:
    """WEIR-197: Constrained Baseline, profile 0, Main; the level that the encoder settled on."""
    assert ChunkEncoder(VIDEO, codec=codec).mime_type == mime_type


@pytest.mark.parametrize(
    ("kbit_per_s", "codec_string"),
    [(10_000, "avc1.42c01e"), (10_001, "avc1.42c01f"), (60_000, "avc1.42c032")],
)
def test_the_announced_level_follows_the_stream(kbit_per_s: int, codec_string: str) -> None:
    """WEIR-197: read out of the parameter sets: another rate is another level."""
    settings = EncoderSettings(max_kbit_per_s=kbit_per_s)
    assert ChunkEncoder(VideoFormat(640, 384, 24), settings).codec_string == codec_string


@pytest.mark.parametrize(("codec", "least"), [("h264", 16), ("vp9", 16), ("av1", 64)])
def test_a_picture_too_small_for_a_codec_is_refused(codec: str, least: int) -> None:
    """WEIR-196: the least one is encoded, and with less on either side there is no stream."""
    smallest = VideoFormat(least, least, 24)
    encoder = ChunkEncoder(smallest, codec=codec)
    assert encoder.encode(moving(2, least, least)).num_frames == 2
    encoder.close()
    for width, height in ((least, least - 2), (least - 2, least)):
        with pytest.raises(ValueError, match=str(least)):
            ChunkEncoder(VideoFormat(width, height, 24), codec=codec)


def test_a_stream_without_a_chunk_still_gets_a_trailer() -> None:
    """WEIR-197: all payloads in a row are a valid file, though one of no frames."""
    encoder = ChunkEncoder(VIDEO)
    trailer = encoder.trailer()
    assert trailer == encoder.trailer()
    assert trailer.startswith(encoder.initialization)
    assert [box.kind for box in boxes(trailer)] == [b"ftyp", b"moov", b"mfra"]
    assert random_access(trailer) == []
    # `mfro` closes the file and says how far before the end `mfra` begins.
    assert trailer[-int.from_bytes(trailer[-4:]) :][4:8] == b"mfra"


def test_the_trailer_ends_the_stream_once() -> None:
    """WEIR-197: the same bytes again, also after `close`; no chunk after it."""
    encoder = ChunkEncoder(VIDEO)
    encoder.encode(chunk())
    trailer = encoder.trailer()
    with pytest.raises(EncoderError, match="the stream has ended"):
        encoder.encode(chunk())
    encoder.close()
    assert encoder.trailer() == trailer


@pytest.mark.parametrize("codec", CODECS)
def test_closing_ends_everything_and_may_be_repeated(codec: str) -> None:
    """WEIR-199: at any time, before the first chunk or after it; the threads are gone."""
    before = os_threads()
    for chunks in (0, 1):
        encoder = ChunkEncoder(VIDEO, EncoderSettings(threads=2), codec)
        for _ in range(chunks):
            encoder.encode(chunk())
        encoder.close()
        encoder.close()
        for ended in (lambda: encoder.encode(chunk()), encoder.trailer):  # noqa: B023  # called here
            with pytest.raises(EncoderError, match="the stream has ended"):
                ended()
        assert os_threads() == before


@pytest.mark.parametrize("codec", CODECS)
def test_encoders_write_nothing_past_the_log(codec: str, capfd: pytest.CaptureFixture[str]) -> None:
    """WEIR-199: neither when they open nor when they are closed, at the end or in mid-stream."""
    for ends in (ChunkEncoder.trailer, ChunkEncoder.close):
        encoder = ChunkEncoder(VIDEO, codec=codec)
        encoder.encode(chunk())
        ends(encoder)
        encoder.close()
    assert capfd.readouterr() == ("", "")


def os_threads() -> int:
    """Threads of this process, those of libraries included."""
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.parametrize("codec", ["h264", "vp9"])
def test_threads_follow_the_setting(codec: str) -> None:
    """WEIR-199: the encoder's own threads are bounded by the operator, none of them by default."""
    video, counts = VideoFormat(1280, 720, 24), {}
    for threads in (1, 2, 3):
        encoder = ChunkEncoder(video, EncoderSettings(threads=threads), codec)
        before = os_threads()
        encoder.encode(moving(1, video.width, video.height))
        counts[threads] = os_threads() - before
        encoder.close()
    assert EncoderSettings().threads == 1
    assert counts[1] == 0
    assert counts[1] < counts[2] < counts[3] <= 6


@pytest.mark.parametrize(
    "frames",
    [
        np.zeros((0, 64, 96, 3), np.uint8),
        np.zeros((2, 96, 64, 3), np.uint8),
        np.zeros((2, 64, 96, 3), np.int16),
    ],
)
@pytest.mark.parametrize("chunks", [0, 2])
def test_frames_of_another_kind_change_nothing(
    frames: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], chunks: int
) -> None:
    """WEIR-199: the stream goes on, byte for byte, as if the call had not been."""
    disturbed, undisturbed = ChunkEncoder(VIDEO), ChunkEncoder(VIDEO)
    for _ in range(chunks):
        assert disturbed.encode(chunk()) == undisturbed.encode(chunk())
    with pytest.raises(ValueError, match="frames"):
        disturbed.encode(frames)
    assert disturbed.encode(chunk()) == undisturbed.encode(chunk())
    assert disturbed.trailer() == undisturbed.trailer()


def failing_at(number: int, fail: Callable[[bytes], bytes]) -> Codec:
    """H.264 whose sample `number`, counted over all contexts from 0, goes wrong once."""
    seen = 0

    def sample(packet: bytes) -> bytes:
        nonlocal seen
        seen += 1
        return fail(packet) if seen == number + 1 else CODECS["h264"].sample(packet)

    return dataclasses.replace(CODECS["h264"], sample=sample)


def refuse(_packet: bytes) -> bytes:
    """A packet that is not as it must be."""
    raise ValueError("a broken packet")


def no_bytes(_packet: bytes) -> bytes:
    """A packet without a picture."""
    return b""


def interrupt(_packet: bytes) -> bytes:
    """Something that no encoder is to blame for."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("fail", "error", "message"),
    [
        (refuse, EncoderError, "libx264 wrote a broken packet"),
        (no_bytes, EncoderError, "libx264 gave no bytes"),
        (interrupt, KeyboardInterrupt, None),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_chunk_that_fails_leaves_no_half_state(
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[[bytes], bytes],
    error: type[BaseException],
    message: str | None,
    place: int,
) -> None:
    """WEIR-199: counts, times and offsets as before it; the next chunk decodes like any other."""
    # The constructor codes one picture, the first chunk three; then one of three goes wrong.
    offer(monkeypatch, failing_at(1 + 3 + place, fail))
    encoder = ChunkEncoder(VIDEO, codec="faulty")
    data = encoder.encode(chunk()).data
    with pytest.raises(error, match=message):
        encoder.encode(chunk())
    assert (encoder.num_frames, encoder.pts_seconds) == (3, 3 / 24)
    data += encoder.encode(chunk(2)).data + encoder.trailer()
    found = fragments(data)
    assert [(part.sequence, part.start, len(part.samples)) for part in found] == [
        (1, 0, 3),
        (2, 3 * VIDEO.picture_ticks, 2),
    ]
    assert found[1].samples[0].is_key
    assert [place.offset for place in random_access(data)] == [part.offset for part in found]


def test_an_encoder_that_holds_pictures_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-196: the real libx264 with look-ahead gives no packet for the first picture."""
    slow = dataclasses.replace(CODECS["h264"], options=lambda _video, _settings: {})
    offer(monkeypatch, slow)
    with pytest.raises(EncoderError, match=r"gave packets \[\] for picture 0"):
        ChunkEncoder(VIDEO, codec="faulty")


@pytest.mark.parametrize(
    "fields",
    [
        {"encoder": "libnothing"},
        {"options": lambda _video, _settings: {"preset": "nonsense"}},
    ],
)
def test_an_encoder_that_does_not_open_says_so(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, object]
) -> None:
    """WEIR-199: one that this FFmpeg lacks, and options that it refuses."""
    offer(monkeypatch, dataclasses.replace(CODECS["h264"], **fields))  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(EncoderError, match="does not open"):
        ChunkEncoder(VIDEO, codec="faulty")


def test_parameters_that_change_in_the_stream_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-197: a viewer has the initialization already, so it must stay true."""
    seen = 0

    def describe(packet: bytes, video: VideoFormat, settings: EncoderSettings) -> SampleDescription:
        nonlocal seen
        seen += 1
        found = CODECS["h264"].describe(packet, video, settings)
        return dataclasses.replace(found, codec_string=f"avc1.{seen // 3}")

    offer(monkeypatch, dataclasses.replace(CODECS["h264"], describe=describe))
    encoder = ChunkEncoder(VIDEO, codec="faulty")
    encoder.encode(chunk())
    with pytest.raises(EncoderError, match="changed its parameters"):
        encoder.encode(chunk())
    assert encoder.num_frames == 3


def test_two_streams_in_two_threads_do_not_meet() -> None:
    """WEIR-196: each is what it would be alone."""
    alone = [ChunkEncoder(VIDEO).encode(chunk(n)).data for n in SIZES]
    together: dict[int, list[bytes]] = {}

    def encode(name: int) -> None:
        together[name] = [ChunkEncoder(VIDEO).encode(chunk(n)).data for n in SIZES]

    threads = [threading.Thread(target=encode, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == {0: alone, 1: alone}
