"""The voices of the embedded adapter and what it declares.

Owns: names, languages and descriptions of voices, and the capability record that follows from which
of them are loaded. Does not own: the files or how they are spoken.
"""

from __future__ import annotations

from collections.abc import Sequence

from contracts.capabilities import SpeechCapabilities, TextCommitmentCapabilities, Voice
from services.tts.adapters.embedded.hibari_voice import VOICE
from services.tts.adapters.embedded.timeline import SAMPLE_RATE_HZ

ENGLISH, CHINESE = "English", "Chinese"
DEFAULT_CHINESE_VOICE = "zf_xiaobei"
NATIVE_SPEED = (0.5, 2.0)
MAX_TEXT_CHARACTERS = 131072
CHINESE_SAMPLES = ("花园里开满了鲜花。", "春天来了，花园里开满了鲜花。")
ENGLISH_SAMPLES = (
    "The garden is full of lovely flowers.",
    "Spring has come, the garden is full of flowers, and we are happy.",
)
"""What a voice's statistics are taken from: plain sentences of about three and four seconds."""
_KINDS = {
    "af": "American English, female",
    "am": "American English, male",
    "zf": "Mandarin, female; reads English words in Chinese text too",
    "zm": "Mandarin, male; reads English words in Chinese text too",
}


def is_chinese_voice(name: str) -> bool:
    """True for the Mandarin voices."""
    return name.startswith("z")


def capabilities_of(kokoro_voices: Sequence[str]) -> SpeechCapabilities:
    """Return what the adapter can do with hibari and these Kokoro voices."""
    languages = (ENGLISH, CHINESE) if kokoro_voices else (ENGLISH,)
    voices = [Voice(VOICE, (ENGLISH,), "American English, female; starts within 50 ms")]
    for name in kokoro_voices:
        spoken = (CHINESE, ENGLISH) if is_chinese_voice(name) else (ENGLISH,)
        voices.append(Voice(name, spoken, _KINDS[name[:2]]))
    return SpeechCapabilities(
        model="embedded",
        sample_rate_hz=SAMPLE_RATE_HZ,
        languages=languages,
        voices=tuple(voices),
        default_voice=VOICE,
        max_text_characters=MAX_TEXT_CHARACTERS,
        word_times=True,
        audio_streaming=True,
        text_commitment=(
            TextCommitmentCapabilities(
                profile="zh_en_special_v1",
                languages=languages,
                independent_segments=True,
                context_preservation=False,
                audio_streaming=True,
                word_timestamps=True,
                # No state outlives an utterance, so a second attempt is as good as a first one.
                failed_segment_retries=True,
            ),
        ),
    )
