"""The speech part of the demonstration.

Owns: which sessions are held, the checks on what comes back, the files written and the lines
printed. Does not own: the wire (`client`), the texts (`texts`), the services (`tools.stack`).
Enforces: WEIR-388 (what is shown is what the services did, or the demonstration fails).
"""

from __future__ import annotations

import json
import sys
import wave
from array import array
from pathlib import Path

from tools.demo.client import (
    BYTES_PER_SAMPLE,
    FAILURES,
    DemonstrationError,
    Utterance,
    speak_buffered,
    speak_streamed,
)
from tools.demo.table import print_table
from tools.demo.texts import SCRIPTS, TOKEN_INTERVAL_S, Script, tokens
from tools.stack import Stack

AUDIBLE_PEAK = 1000
"""Speech peaks far above this, of 32767; silence and dither stay far below."""

COLUMNS = ("#", "last character sent", "submitted", "first audio", "audio", "words", "text")


async def run(suite: Stack, folder: Path) -> list[str]:
    """Speak every script, write the files into `folder`; return what went wrong."""
    problems: list[str] = []
    for script in SCRIPTS:
        print(f"\n{script.language}, token by token")
        try:
            await _streamed(suite.speech_url, script, folder)
        except FAILURES as error:
            problems.append(f"{script.name}: {error or type(error).__name__}")
            print(f"failed: {problems[-1]}")
    script = SCRIPTS[0]
    print(f"\n{script.language}, the whole text at once")
    try:
        await _buffered(suite.speech_url, script, folder)
    except FAILURES as error:
        problems.append(f"{script.name} buffered: {error or type(error).__name__}")
        print(f"failed: {problems[-1]}")
    return problems


async def _streamed(url: str, script: Script, folder: Path) -> None:
    config = {
        "text_input_mode": "commitment",
        "language": script.language,
        "response_format": "pcm",
        "stream_audio": True,
        "word_timestamps": True,
    }
    utterance = await speak_streamed(url, config, tokens(script.text), TOKEN_INTERVAL_S)
    check(utterance, script.text)
    # The text comes last, so the double width of Chinese characters disturbs no column.
    print_table(COLUMNS, rows(utterance))
    pcm = b"".join(bytes(segment.pcm) for segment in utterance.segments)
    audio, words = folder / f"{script.name}.wav", folder / f"{script.name}.words.json"
    write_wav(audio, pcm, utterance.sample_rate_hz)
    words.write_text(word_list(utterance), encoding="utf-8")
    for warning in utterance.warnings:
        print(f"warning: {warning}")
    print(
        f"first audio {utterance.first_audio_ms:,.0f} ms after the first character; "
        f"the text took {utterance.text_sent_ms:,.0f} ms to arrive"
    )
    print(f"saved {audio} ({utterance.milliseconds(pcm) / 1000:.1f} s) and {words}")


async def _buffered(url: str, script: Script, folder: Path) -> None:
    config = {"language": script.language, "response_format": "wav"}
    audio = folder / f"{script.name}-buffered.wav"
    audio.write_bytes(await speak_buffered(url, config, script.text))
    with wave.open(str(audio), "rb") as file:
        seconds = file.getnframes() / file.getframerate()
        check_audible(file.readframes(file.getnframes()), "the file")
    print(f"saved {audio} ({seconds:.1f} s)")


def check(utterance: Utterance, source: str) -> None:
    """Refuse an utterance that lost text, changed text, is silent or has no word times."""
    # WEIR-388: nothing is shown that was not checked first.
    position = 0
    for segment in utterance.segments:
        skipped = source[position : segment.source_start]
        if skipped.strip():
            raise DemonstrationError(f"this text was never spoken: {skipped!r}")
        if segment.text != source[segment.source_start : segment.source_end]:
            raise DemonstrationError(f"segment text is not the source: {segment.text!r}")
        if not segment.words:
            raise DemonstrationError(f"no word times for {segment.text!r}")
        check_audible(bytes(segment.pcm), repr(segment.text))
        position = segment.source_end
    if source[position:].strip():
        raise DemonstrationError(f"this text was never spoken: {source[position:]!r}")


def check_audible(pcm: bytes, what: str) -> None:
    """Refuse mono s16le audio without a sound in it."""
    samples = array("h", pcm)
    if sys.byteorder == "big":
        samples.byteswap()
    if not samples or max(max(samples), -min(samples)) < AUDIBLE_PEAK:
        raise DemonstrationError(f"no sound in {what}")


def rows(utterance: Utterance) -> list[tuple[str, ...]]:
    """Return the cells of the table, one row a segment."""
    return [
        (
            str(index),
            f"{segment.text_sent_ms:,.0f} ms",
            f"{segment.submitted_ms:,.0f} ms",
            f"{segment.first_audio_ms or 0:,.0f} ms",
            f"{utterance.milliseconds(segment.pcm) / 1000:.2f} s",
            str(len(segment.words or ())),
            segment.text.strip(),
        )
        for index, segment in enumerate(utterance.segments)
    ]


def write_wav(path: Path, pcm: bytes, sample_rate_hz: int) -> None:
    """Write mono s16le samples as a WAV file."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(BYTES_PER_SAMPLE)
        file.setframerate(sample_rate_hz)
        file.writeframes(pcm)


def word_list(utterance: Utterance) -> str:
    """Return the words as JSON, their times moved to the start of the whole file."""
    words, offset_ms = [], 0.0
    for segment in utterance.segments:
        for word in segment.words or ():
            start, end = word["start_ms"] + offset_ms, word["end_ms"] + offset_ms
            words.append({"word": word["word"], "start_ms": round(start), "end_ms": round(end)})
        offset_ms += utterance.milliseconds(segment.pcm)
    return json.dumps(words, ensure_ascii=False, indent=1) + "\n"
