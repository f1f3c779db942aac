"""What the tests of the speech service share.

Owns: an adapter whose every step is written in the test, and requests that are valid but for what a
test changes. Does not own: a model; where the real thing can run (`tone`), tests run that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from weir.media.v1 import audio_pb2, identity_pb2, modality_pb2, text_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import SpeechCapabilities, Voice
from contracts.identity import SegmentIdentity
from contracts.modality import AudioEncoding, AudioFormat
from contracts.speech import SegmentRequest, SynthesisOptions
from services.runtime.metrics import Metrics
from services.tts.adapters.base import AudioStep, Samples, Step, Utterance
from services.tts.engine import Engine
from services.tts.metrics import TtsMetrics
from services.tts.settings import EngineSettings

RATE_HZ = 24000
CAPABILITIES = SpeechCapabilities(
    model="scripted",
    sample_rate_hz=RATE_HZ,
    languages=("English", "Chinese"),
    voices=(Voice("anna", ("English",)), Voice("bo", ("Chinese", "English"))),
    default_voice="anna",
    max_text_characters=100,
    word_times=True,
    audio_streaming=True,
)
IDENTITY = SegmentIdentity("session-1", "request-1", 2, 3, 1)

Script = Callable[[Utterance], Iterator[Step]]


class ScriptedAdapter:
    """A `VoiceAdapter` that does what `script` says and notes where it was opened and closed."""

    def __init__(
        self,
        script: Script,
        *,
        capabilities: SpeechCapabilities = CAPABILITIES,
        native_speed: tuple[float, float] | None = None,
        concurrency: int = 1,
    ) -> None:
        self._script = script
        self.capabilities = capabilities
        self.native_speed = native_speed
        self.concurrency = concurrency
        self.threads: list[int] = []
        """Ident of the thread at each opening, step and closing."""
        self.steps = 0
        """Steps that were asked for and given."""
        self.stepped = threading.Condition()
        self._kept: Iterator[Step] | None = None
        self.closed = threading.Event()
        """Set when an iterator has been closed or has ended."""

    def load(self) -> None:
        """Have nothing to load."""

    def close(self) -> None:
        """Have nothing to free."""

    def synthesize(self, utterance: Utterance) -> Iterator[Step]:
        """Follow the script. The iterator is kept, so nothing but its `close` ends it early."""
        self._kept = self._follow(utterance)
        return self._kept

    def _follow(self, utterance: Utterance) -> Iterator[Step]:
        self.threads.append(threading.get_ident())
        try:
            for step in self._script(utterance):
                with self.stepped:
                    self.steps += 1
                    self.stepped.notify_all()
                yield step
                self.threads.append(threading.get_ident())
        finally:
            self.threads.append(threading.get_ident())
            self.closed.set()

    def wait_for_steps(self, count: int, timeout_s: float = 10.0) -> bool:
        """Wait until `count` steps were given; False when it takes too long."""
        with self.stepped:
            return self.stepped.wait_for(lambda: self.steps >= count, timeout_s)


def make_engine(
    adapter: ScriptedAdapter, metrics: Metrics | None = None, **settings: float
) -> Engine:
    """Return an engine with `settings` of `EngineSettings`. Needs a running loop."""
    chosen = replace(EngineSettings(), **settings)  # type: ignore[arg-type]  # names by the test
    return Engine(adapter, chosen, TtsMetrics(metrics or Metrics("tts")))


def sine(seconds: float, rate_hz: int = RATE_HZ, hertz: float = 440.0) -> Samples:
    """Return a sine of half the full scale."""
    time_s = np.arange(round(seconds * rate_hz)) / rate_hz
    return (0.5 * np.sin(2 * np.pi * hertz * time_s)).astype(np.float32)


def steps_of(*blocks: Samples) -> Script:
    """Return a script that gives these blocks of samples."""
    return lambda _: iter([AudioStep(block) for block in blocks])


def segment(
    encoding: AudioEncoding = AudioEncoding.PCM,
    *,
    rate_hz: int = 0,
    text: str = "some words",
    session_id: str = IDENTITY.session_id,
    **options: float | bool | None,
) -> SegmentRequest:
    """Return a valid request; `options` are those of the synthesis."""
    return SegmentRequest(
        identity=replace(IDENTITY, session_id=session_id),
        text=text,
        output=AudioFormat(encoding, rate_hz),
        options=SynthesisOptions(**options),  # type: ignore[arg-type]  # names by the test
    )


def wire_request(text: str = "some words") -> tts_pb2.SynthesizeRequest:
    """Return a valid request as it comes off the wire."""
    return tts_pb2.SynthesizeRequest(
        identity=identity_pb2.SegmentIdentity(
            session_id=IDENTITY.session_id,
            request_id=IDENTITY.request_id,
            utterance_index=IDENTITY.utterance_index,
            segment_index=IDENTITY.segment_index,
            attempt=IDENTITY.attempt,
        ),
        text=text_pb2.TextPayload(modality=modality_pb2.MODALITY_TEXT, text=text),
        output=audio_pb2.AudioFormat(encoding=audio_pb2.AUDIO_ENCODING_PCM_S16LE),
    )


def sample_of(metrics: Metrics, name: str, **labels: str) -> float:
    """Return the value of a time series as a scrape would see it."""
    value = metrics.registry.get_sample_value(f"weir_tts_{name}", labels)
    assert value is not None, name
    return value
