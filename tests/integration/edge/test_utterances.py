"""Utterances over a real connection: modes, formats, order, reconfiguration."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.integration.edge.client import COMMITTED, STREAMED, Message, connected

CHARACTER_S = 0.06
RATE_HZ = 24000


def decoded(data: bytes, encoding: str) -> tuple[Any, int]:
    """Decode audio of a response format to float samples and their rate."""
    raw = {"pcm": ("PCM_16", RATE_HZ), "mulaw": ("ULAW", 8000)}.get(encoding)
    if raw is None:
        samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
        return samples, int(rate)
    samples, rate = soundfile.read(
        io.BytesIO(data), dtype="float32", format="RAW", subtype=raw[0], samplerate=raw[1],
        channels=1, endian="LITTLE",
    )  # fmt: skip
    return samples, int(rate)


def pitch_hz(samples: Any, rate_hz: int) -> float:
    """Return the strongest frequency."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * rate_hz / len(samples)


async def test_a_buffered_utterance_is_one_file_of_the_whole_text(edge: str) -> None:
    """WEIR-150: without a split the packets make no difference: one segment, one binary."""
    async with connected(edge, {}) as client:
        heard = await client.say("Hello ", "there. ", "Two sentences.")
    (segment,) = heard.segments
    assert segment.text == "Hello there. Two sentences."
    assert (segment.start["source_start"], segment.start["source_end"]) == (0, 27)
    assert (segment.start["format"], segment.start["channels"]) == ("wav", 1)
    (file,) = segment.chunks
    samples, rate = decoded(file, "wav")
    assert rate == segment.start["sample_rate"] == RATE_HZ
    assert len(samples) / rate == pytest.approx(27 * CHARACTER_S, abs=0.001)


@pytest.mark.parametrize("encoding", ["wav", "pcm", "flac", "mp3", "opus", "mulaw"])
async def test_every_format_is_what_audio_start_says(edge: str, encoding: str) -> None:
    """WEIR-150: the file decodes to the sound of the text, at the announced rate."""
    async with connected(edge, {"response_format": encoding, "seed": 1}) as client:
        heard = await client.say("aaaaaaaaaaaaaaaaaaaa")
    (segment,) = heard.segments
    assert segment.start["format"] == encoding
    samples, rate = decoded(segment.audio, encoding)
    expected = {"mulaw": 8000, "opus": 48000}.get(encoding, RATE_HZ)
    assert rate == segment.start["sample_rate"] == expected
    slack_s = {"mp3": 0.15, "opus": 0.05}.get(encoding, 0.001)
    assert len(samples) / rate == pytest.approx(20 * CHARACTER_S, abs=slack_s)
    assert 1600 < pitch_hz(samples, rate) < 1760
    assert np.max(np.abs(samples)) > 0.2


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000])
async def test_a_sample_rate_is_resampled_to(edge: str, rate: int) -> None:
    """WEIR-150: the announced rate is the asked one and the true one."""
    config = {"response_format": "wav", "sample_rate": rate, "seed": 1}
    async with connected(edge, config) as client:
        heard = await client.say("aaaaaaaaaa")
    samples, true_rate = decoded(heard.audio, "wav")
    assert true_rate == heard.segments[0].start["sample_rate"] == rate
    assert len(samples) / rate == pytest.approx(10 * CHARACTER_S, abs=0.01)
    assert 1600 < pitch_hz(samples, rate) < 1760


@pytest.mark.parametrize(("speed", "factor"), [(0.5, 2.0), (2.0, 0.5)])
async def test_speed_changes_the_length(edge: str, speed: float, factor: float) -> None:
    """WEIR-140: a speed that is accepted is heard."""
    async with connected(edge, {"speed": speed}) as client:
        heard = await client.say("aaaaaaaaaaaaaaaaaaaa")
    samples, rate = decoded(heard.audio, "wav")
    assert len(samples) / rate == pytest.approx(20 * CHARACTER_S * factor, rel=0.05)


@pytest.mark.parametrize(("encoding", "width"), [("pcm", 2), ("mulaw", 1)])
async def test_streamed_audio_comes_in_raw_chunks_of_whole_samples(
    edge: str, encoding: str, width: int
) -> None:
    """WEIR-150: chunks concatenate to what the file would hold."""
    text = "A sentence that takes several chunks to speak."
    config: Message = {"response_format": encoding, "seed": 3}
    async with connected(edge, config) as client:
        file = (await client.say(text)).audio
        await client.configure(**config, stream_audio=True)
        (segment,) = (await client.say(text)).segments
    assert len(segment.chunks) > 5
    assert all(len(chunk) % width == 0 for chunk in segment.chunks)
    assert segment.audio == file


async def test_sentences_are_segments_in_source_order(edge: str) -> None:
    """IO-INV-103: each piece is started and ended before the next one starts."""
    config = {**STREAMED, "split_granularity": "sentence"}
    async with connected(edge, config) as client:
        heard = await client.say("One is", " here. Two", " follows! And ", "the rest")
    assert heard.texts == ["One is here.", " Two follows!", " And the rest"]
    assert [s.start["segment_index"] for s in heard.segments] == [0, 1, 2]
    spans = [(s.start["source_start"], s.start["source_end"]) for s in heard.segments]
    assert spans == [(0, 12), (12, 25), (25, 38)]
    assert len({s.start["request_id"] for s in heard.segments}) == 3


async def test_committed_text_is_spoken_before_the_input_ends(edge: str) -> None:
    """IO-INV-102: a sentence that can change no more starts while more text is expected."""
    async with connected(edge, COMMITTED) as client:
        await client.text("Hello", " there", ".", " And")
        first = [await client.message("audio.start")]
        first += await client.until("audio.done")  # type: ignore[arg-type]  # frames of any kind
        assert first[0]["sentence_text"] == "Hello there."
        await client.text(" more.")
        await client.send("input.done")
        rest = await client.until("session.done")
    texts = [f["sentence_text"] for f in rest if isinstance(f, dict) and "sentence_text" in f]
    assert texts == [" And more."]
    assert isinstance(rest[-1], dict)
    assert rest[-1]["total_sentences"] == 2


@pytest.mark.parametrize("packet", [1, 3, 1000])
async def test_committed_segments_do_not_depend_on_the_packets(edge: str, packet: int) -> None:
    """IO-INV-102: the same text gives the same segments, one code point a packet or all at once."""
    text = "It costs $3.50 today. 今天是2024年。你好！Who is here"
    async with connected(edge, {**COMMITTED, "seed": 5}) as client:
        heard = await client.say(*(text[i : i + packet] for i in range(0, len(text), packet)))
    assert heard.texts == [
        "It costs $3.50 today.",
        " 今天是2024年。",
        "你好！",
        "Who is here",
    ]
    spans = [(s.start["source_start"], s.start["source_end"]) for s in heard.segments]
    assert [a for a, _ in spans] == [0, *(b for _, b in spans[:-1])]


async def test_one_connection_carries_many_utterances(edge: str) -> None:
    """IO-INV-103, WEIR-151: each has its index, and its text begins at offset 0."""
    async with connected(edge, STREAMED) as client:
        for index, text in enumerate(["One.", "Two more.", "And a third one."]):
            heard = await client.say(text)
            assert heard.done["utterance_index"] == index
            assert heard.texts == [text]
            assert heard.segments[0].start["source_start"] == 0


@pytest.mark.parametrize("mode", ["buffered", "commitment"])
@pytest.mark.parametrize("text", ["", " \n\t "])
async def test_an_utterance_with_nothing_to_say_is_done_with_none(
    edge: str, mode: str, text: str
) -> None:
    """IO-INV-103, WEIR-151: its index is consumed all the same."""
    async with connected(edge, {**COMMITTED, "text_input_mode": mode}) as client:
        heard = await client.say(text)
        assert (heard.done["utterance_index"], heard.done["total_sentences"]) == (0, 0)
        assert (await client.say("Now.")).done["utterance_index"] == 1


async def test_an_empty_text_opens_no_utterance(edge: str) -> None:
    """IO-INV-103, WEIR-151: a configuration after it is still accepted."""
    async with connected(edge, STREAMED) as client:
        await client.text("")
        await client.configure(response_format="wav")
        heard = await client.say("Hi.")
    assert heard.segments[0].start["format"] == "wav"


async def test_a_new_configuration_replaces_the_old_one_whole(edge: str) -> None:
    """IO-INV-103, WEIR-151: between utterances; what it leaves out falls back to its default."""
    async with connected(edge, {"response_format": "pcm", "sample_rate": 8000}) as client:
        before = await client.say("Hi.")
        await client.configure()
        after = await client.say("Hi.")
    start = before.segments[0].start
    assert (start["format"], start["sample_rate"]) == ("pcm", 8000)
    start = after.segments[0].start
    assert (start["format"], start["sample_rate"]) == ("wav", RATE_HZ)


async def test_a_configuration_is_refused_while_text_is_buffered(edge: str) -> None:
    """IO-INV-103: the utterance goes on under the one it began with."""
    async with connected(edge, STREAMED) as client:
        await client.text("Hello ")
        await client.configure(response_format="wav")
        await client.error("session_state")
        heard = await client.say("there.")
    assert heard.texts == ["Hello there."]
    assert heard.segments[0].start["format"] == "pcm"


@pytest.mark.parametrize(
    "refused",
    [
        {"language": "Klingon"},
        {"text_input_mode": "commitment"},
        {"response_format": "wav", "stream_audio": True},
        {"word_timestamps": True},
        {"response_format": "opus", "sample_rate": 24000},
        {"task_type": "VoiceDesign"},
        {"instructions": "Whisper."},
        {"ref_audio": "http://127.0.0.1/voice.wav"},
    ],
)
async def test_a_configuration_that_cannot_hold_leaves_the_old_one_in_force(
    edge: str, refused: Message
) -> None:
    """WEIR-140: what is not declared is refused before any work."""
    async with connected(edge, STREAMED) as client:
        await client.configure(**refused)
        await client.error("unsupported_option")
        heard = await client.say("Hi.")
    assert heard.segments[0].start["format"] == "pcm"


async def test_word_timestamps_come_in_json_with_the_whole_list_last(edge: str) -> None:
    """IO-INV-101: audio chunks carry no words; the last chunk carries all and no audio."""
    config = {**STREAMED, "word_timestamps": True}
    async with connected(edge, config) as client:
        (segment,) = (await client.say("Hello big world.")).segments
    *audio, words = segment.messages
    assert not segment.chunks
    assert [m["chunk_id"] for m in segment.messages] == list(range(len(segment.messages)))
    assert all(m["audio_b64"] and m["timestamps"] is None for m in audio)
    ends = [m["chunk_end_ms"] for m in audio]
    assert [m["chunk_start_ms"] for m in audio] == [0, *ends[:-1]]
    assert ends[-1] == len(segment.audio) / 2 / RATE_HZ * 1000
    assert words["audio_b64"] == ""
    assert words["timestamps"] == [
        {"word": "Hello", "start_ms": 0, "end_ms": 300},
        {"word": "big", "start_ms": 360, "end_ms": 540},
        {"word": "world", "start_ms": 600, "end_ms": 900},
    ]


async def test_text_without_sound_is_answered_with_valid_audio(edge: str) -> None:
    """WEIR-150: a segment of punctuation alone may be silent, but it is started and ended."""
    async with connected(edge, {}) as client:
        (segment,) = (await client.say("...")).segments
    samples, rate = decoded(segment.audio, "wav")
    assert rate == RATE_HZ
    assert not np.any(samples)


async def test_a_seed_reproduces_the_bytes(edge: str) -> None:
    """WEIR-142: same seed, same text, same bytes; another seed, other bytes."""
    audio: dict[int, list[bytes]] = {7: [], 8: []}
    for seed in (7, 8, 7):
        async with connected(edge, {**STREAMED, "seed": seed}) as client:
            audio[seed].append((await client.say("The same words.")).audio)
    assert audio[7][0] == audio[7][1]
    assert audio[7][0] != audio[8][0]


@pytest.mark.parametrize("language", ["en", "EN", "english", "English", "zh", "Chinese", "fr"])
async def test_a_language_is_named_in_english_or_by_its_iso_code(edge: str, language: str) -> None:
    """WEIR-140: without regard to case."""
    async with connected(edge, {**STREAMED, "language": language}) as client:
        assert (await client.say("Hi.")).audio


async def test_what_is_ignored_is_told_with_the_first_segment_and_once(edge: str) -> None:
    """WEIR-141: nothing the client asked for is dropped without a word."""
    config = {**STREAMED, "voice": "Nobody", "model": "other", "colour": "red"}
    config |= {"max_new_tokens": 5}
    async with connected(edge, config) as client:
        first = (await client.say("Hi.")).segments[0].start["warnings"]
        assert "warnings" not in (await client.say("Hi.")).segments[0].start
    for word in ("voice", "model", "colour", "max_new_tokens"):
        assert any(word in warning for warning in first), f"{word} is missing in {first}"
    assert not any("Nobody" in warning for warning in first)
