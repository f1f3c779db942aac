"""What the tests of the video service share.

Owns: an adapter whose every denoising step a test lets happen, requests that are valid but for what
a test changes, and reading prompts and frame numbers back out of coded video. Does not own: a
model; `pattern` is the real thing, and the stepped adapter is `pattern` with a hold on it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import av
import numpy as np
from google.protobuf import json_format
from weir.media.v1 import identity_pb2, modality_pb2, text_pb2, video_pb2
from weir.video.v1 import video_pb2 as service_pb2

from contracts.video import GenerationIdentity
from services.runtime.metrics import Metrics
from services.video.adapters.base import Frames, Generation, ShouldStop
from services.video.adapters.pattern import (
    STRIP,
    Colour,
    PatternAdapter,
    PatternLatents,
    PatternSettings,
    PatternState,
    number_in,
)
from services.video.adapters.settings import AdapterSettings
from tests.unit.video.media.colours import decoded, planes

PATIENCE_S = 20.0
"""Longest wait for something that must come."""
IDENTITY = GenerationIdentity("session-1", "request-1", 1)
SMALL = {"width": 64, "height": 64, "first_chunk_frames": 3, "chunk_frames": 4, "num_frames": 11}
"""A pattern that is quickly coded: 3, 4 and 4 frames."""
TOLERANCE = 3.0
"""Steps of 255 that a channel of a flat colour is off after H.264 at most."""


def pattern(**settings: Any) -> PatternAdapter:
    """Return a pattern adapter of small frames with these settings."""
    return PatternAdapter(AdapterSettings(), PatternSettings(**{**SMALL, **settings}))


class SteppedAdapter(PatternAdapter):
    """A pattern adapter that makes a denoising step only when it is let to, and notes all calls."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(AdapterSettings(), PatternSettings(**{**SMALL, **settings}))
        self._permits = threading.Semaphore(0)
        self._free = False
        self.inside = threading.Semaphore(0)
        """Released whenever a generation is inside a step."""
        self.steps: list[int] = []
        """Seed of the generation of each step begun."""
        self.chunks: list[tuple[int, int]] = []
        """Seed and index of each chunk that was made."""
        self.closed: list[int] = []
        """Seed of each generation closed."""
        self.threads: dict[str, set[str]] = {}
        """Names of the threads of each kind of call."""
        self.overlaps: list[str] = []
        """Kinds of call that were made twice at once."""
        self.unloaded_during: frozenset[str] | None = None
        """Kinds of call that were under way when it was unloaded; None before that."""
        self._running: set[str] = set()
        self._lock = threading.Lock()

    def let(self, steps: int) -> None:
        """Let that many steps be made."""
        self._permits.release(steps)

    def let_all(self) -> None:
        """Let everything happen from now on."""
        self._free = True
        self._permits.release(1000)

    def start(self, generation: Generation, prompt: Colour) -> PatternState:
        with self.noted("start"):
            return super().start(generation, prompt)

    def next_chunk(
        self, state: PatternState, prompt: Colour, should_stop: ShouldStop
    ) -> PatternLatents | None:
        seed, index = state.generation.seed, state.chunks
        with self.noted("next_chunk"):
            for step in range(state.steps):
                if step and should_stop():
                    return None
                self.steps.append(seed)
                self.inside.release()
                assert self._free or self._permits.acquire(timeout=PATIENCE_S)
            made = super().next_chunk(state, prompt, lambda: False)
            self.chunks.append((seed, index))
            return made

    def decode(self, state: PatternState, latents: PatternLatents) -> Frames:
        with self.noted("decode"):
            return super().decode(state, latents)

    def encode_prompt(self, text: str) -> Colour:
        with self.noted("encode_prompt"):
            return super().encode_prompt(text)

    def close(self, state: PatternState) -> None:
        with self.noted("close"):
            self.closed.append(state.generation.seed)
            super().close(state)

    def unload(self) -> None:
        self.unloaded_during = frozenset(self._running)
        super().unload()

    def noted(self, kind: str) -> _Noted:
        """Note a call of this kind for the length of the scope."""
        return _Noted(self, kind)

    def enter(self, kind: str) -> None:
        """Note that a call begins."""
        with self._lock:
            if kind in self._running:
                self.overlaps.append(kind)
            self._running.add(kind)
            name = threading.current_thread().name.split("_")[0]
            self.threads.setdefault(kind, set()).add(name)

    def leave(self, kind: str) -> None:
        """Note that a call ends."""
        with self._lock:
            self._running.discard(kind)


class _Noted:
    def __init__(self, adapter: SteppedAdapter, kind: str) -> None:
        self._adapter, self._kind = adapter, kind

    def __enter__(self) -> None:
        self._adapter.enter(self._kind)

    def __exit__(self, *_: object) -> None:
        self._adapter.leave(self._kind)


def config(prompt: str = "#204060", credits: int = 2, **fields: Any) -> Any:
    """Return a valid config as the first message of a call; `fields` are those of the config."""
    made = service_pb2.GenerationConfig(
        identity=identity_pb2.GenerationIdentity(
            session_id=IDENTITY.session_id,
            request_id=IDENTITY.request_id,
            attempt=IDENTITY.attempt,
        ),
        prompt=text_pb2.TextPayload(modality=modality_pb2.MODALITY_TEXT, text=prompt),
        output=video_pb2.VideoFormat(container=video_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4),
        initial_credits=credits,
    )
    made.MergeFrom(service_pb2.GenerationConfig(**fields))
    return service_pb2.StreamGenerateRequest(config=made)


def interaction(
    event_id: str, prompt: str, chunks: int | None = None, **event_fields: object
) -> service_pb2.StreamGenerateRequest:
    """Return an interaction as a message of the client."""
    asked = service_pb2.Interaction(event_id=event_id, prompt=prompt, transition_chunks=chunks)
    if event_fields:
        json_format.ParseDict(event_fields, asked.event_fields)
    return service_pb2.StreamGenerateRequest(interaction=asked)


def credit(chunks: int = 1) -> service_pb2.StreamGenerateRequest:
    """Return room for further chunks."""
    return service_pb2.StreamGenerateRequest(credit=service_pb2.Credit(chunks=chunks))


def control(kind: str, **fields: Any) -> service_pb2.StreamGenerateRequest:
    """Return the control called `kind`: pause, resume, playback or stop."""
    message = service_pb2.StreamGenerateRequest()
    part = getattr(message, kind)
    part.SetInParent()
    for name, value in fields.items():
        setattr(part, name, value)
    return message


def frames_in(payloads: Iterable[bytes]) -> list[av.VideoFrame]:
    """Return the frames of payloads in a row."""
    return list(decoded(b"".join(payloads)))


def colour_in(frame: av.VideoFrame) -> tuple[float, float, float]:
    """Return the colour above the strips, 0 to 255, read as BT.709 with limited range."""
    luma, blue, red = (plane[: plane.shape[0] // 2].mean() for plane in planes(frame))
    light = (luma - 16) / 219
    blue_part, red_part = (blue - 128) / 224, (red - 128) / 224
    return (
        255 * (light + 1.5748 * red_part),
        255 * (light - 0.1873 * blue_part - 0.4681 * red_part),
        255 * (light + 1.8556 * blue_part),
    )


def number_of(frame: av.VideoFrame) -> int:
    """Return the number that a frame shows."""
    return _strip(frame, 1)


def seed_of(frame: av.VideoFrame) -> int:
    """Return the low bits of the seed that a frame shows."""
    return _strip(frame, 2)


def _strip(frame: av.VideoFrame, place: int) -> int:
    luma = planes(frame)[0]
    height = max(1, frame.height // STRIP)
    bottom = frame.height - (place - 1) * height
    return number_in(np.asarray(luma[bottom - height : bottom].mean(axis=0)))


def close_to(seen: Iterable[float], wanted: Iterable[float]) -> bool:
    """Whether a colour that was coded is the one that was meant."""
    return all(abs(a - b) <= TOLERANCE for a, b in zip(seen, wanted, strict=True))


def sample_of(metrics: Metrics, name: str, **labels: str) -> float:
    """Return the value of a time series as a scrape would see it."""
    value = metrics.registry.get_sample_value(f"weir_video_{name}", labels)
    assert value is not None, name
    return value
