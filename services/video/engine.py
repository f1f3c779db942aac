"""The loaded model and everything that is generated with it.

Owns: the threads of a replica, the admission of generations, and each one's way from a request to
`accepted`. Does not own: a generation's life after that (`services.video.run`), gRPC. Enforces:
WEIR-237 (what a model, an encoder or a picture refuses is refused before `accepted`), WEIR-228 (a
generation that is refused holds no slot).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from contracts.errors import (
    FieldViolation,
    GrpcCode,
    Reason,
    WeirError,
    failure,
)
from contracts.generation import Accepted, GenerationRequest, Interaction
from contracts.video import VideoCapabilities, VideoCodec
from services.runtime.logging import get_logger
from services.video.adapters.base import Generation, ModelUnavailableError, VideoAdapter
from services.video.admission import Admission
from services.video.ending import INTERNAL
from services.video.gate import Gate
from services.video.interactions import InteractionRules, Interactions
from services.video.media.encoder import ChunkEncoder
from services.video.media.pictures import MAX_CHUNK_FRAMES
from services.video.metrics import VideoMetrics
from services.video.outbox import Outbox
from services.video.planning import Plan, pacing, plan
from services.video.prompts import PromptEncoder
from services.video.reference_image import first_frame
from services.video.rendering import Rendering
from services.video.replica import Replica
from services.video.run import Run
from services.video.settings import EncodingSettings, EngineSettings
from services.video.timeline import Timeline
from services.video.turns import Turns

Value = TypeVar("Value")

SHUTTING_DOWN = failure(Reason.SHUTTING_DOWN, "The replica is shutting down.")

_SEED_BITS = 31
_clock = time.monotonic
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Bounds of a replica; the last two are those of its messages."""

    engine: EngineSettings
    encoding: EncodingSettings
    waiting_messages: int
    max_payload_bytes: int


class Engine:
    """Generates with a loaded adapter. Made and used on one event loop."""

    def __init__(
        self,
        adapter: VideoAdapter[Any, Any, Any],
        limits: EngineLimits,
        metrics: VideoMetrics,
        model_name: str = "",
    ) -> None:
        declared = _encodable(adapter.capabilities)
        self.capabilities: VideoCapabilities = replace(
            declared,
            model=model_name or declared.model,
            codecs=tuple(VideoCodec(name) for name in limits.encoding.codecs),
        )
        self.metrics = metrics
        self.admission = Admission(limits.engine.max_sessions, limits.engine.retry_delay_ms)
        self._limits = limits
        self._prompts = PromptEncoder(adapter)
        self._replica = Replica(
            adapter=adapter,
            turns=Turns(_clock, "generation"),
            encoding=ThreadPoolExecutor(1, thread_name_prefix="encoding"),
            closing=ThreadPoolExecutor(1, thread_name_prefix="closing"),
            metrics=metrics,
            clock=_clock,
            unsent_chunks=limits.engine.unsent_chunks,
        )
        self._runs: set[Run] = set()
        metrics.watch(self.admission)

    async def begin(self, request: GenerationRequest) -> Run:
        """Take a slot and prepare everything; the run has `accepted` to say and then begins.

        The caller ends it with `Run.cancel` in any case. Raises WeirError: UNSUPPORTED_OPTION,
        INVALID_MESSAGE, OVERLOADED, SHUTTING_DOWN or INTERNAL, and then holds nothing.
        """
        planned = plan(
            request,
            self.capabilities,
            max_pixels=self._limits.engine.max_pixels,
            seed=random.getrandbits(_SEED_BITS),
        )
        slot = self.admission.take()
        run = Run(
            self._replica,
            slot,
            Gate(pacing(planned, self.capabilities)),
            Outbox(self._limits.waiting_messages),
        )
        self._runs.add(run)
        try:
            await self._prepare(run, planned)
        except BaseException:
            self.end(run)
            raise
        return run

    def interact(self, run: Run, interaction: Interaction) -> None:
        """Answer an interaction and have it encoded when that is due."""
        if run.interactions.admit(interaction):
            self._prompts.update(interaction, run.interactions)

    def end(self, run: Run) -> None:
        """Cancel a run unless it has ended, and forget it. Any number of times."""
        run.cancel()
        self._runs.discard(run)

    def shut_down(self) -> None:
        """Refuse everything new and fail what runs, so that its clients hear why."""
        self.admission.drain()
        for run in tuple(self._runs):
            run.fail(SHUTTING_DOWN)

    async def left(self) -> None:
        """Return when no thread is inside the adapter any more, after `close`."""
        await self.admission.empty()
        await self._prompts.left()

    def close(self) -> None:
        """End every generation and the threads, as far as none is at work; may be called again.

        The adapter must not be unloaded before `left` has returned.
        """
        self.admission.drain()
        for run in tuple(self._runs):
            self.end(run)
        self._prompts.close()
        self._replica.turns.close()
        if not self.admission.busy:
            for executor in (self._replica.encoding, self._replica.closing):
                executor.shutdown(wait=False, cancel_futures=True)

    async def _prepare(self, run: Run, planned: Plan) -> None:
        request, adapter = planned.request, self._replica.adapter
        image = None
        if request.image is not None:
            bound = self._limits.engine.max_image_pixels
            image = await asyncio.to_thread(
                first_frame, request.image, planned.width, planned.height, bound
            )
        prompt = await _guarded(
            asyncio.wrap_future(self._prompts.first(request.prompt)),
            _refused(Reason.INVALID_MESSAGE, "prompt.text", "Must be one that the model can read."),
        )
        encoder = await self._open_encoder(run, planned)
        generation = Generation(
            width=planned.width,
            height=planned.height,
            frame_rate=planned.frame_rate,
            seed=planned.seed,
            negative_prompt=request.negative_prompt,
            image=image,
            options=request.options,
            extra_params=request.extra_params,
        )
        await _guarded(
            run.start(generation, prompt),
            _refused(
                Reason.UNSUPPORTED_OPTION, "config", "Must hold values that the model accepts."
            ),
        )
        timeline = Timeline(prompt, adapter.blend)
        run.open(
            self._accepted(planned, encoder.mime_type),
            Interactions(timeline, self._rules(), run.outbox),
        )

    async def _open_encoder(self, run: Run, planned: Plan) -> ChunkEncoder:
        opened: list[ChunkEncoder] = []

        def make() -> Rendering:
            opened.append(
                ChunkEncoder(
                    planned.format,
                    self._limits.encoding.for_encoder,
                    planned.request.codec.value,
                )
            )
            return Rendering(self._replica.adapter, opened[0], self._limits.max_payload_bytes)

        await _guarded(
            run.prepare(make),
            _refused(
                Reason.UNSUPPORTED_OPTION,
                "output",
                "Must be a size and a codec that go together.",
            ),
        )
        return opened[0]

    def _accepted(self, planned: Plan, mime_type: str) -> Accepted:
        return Accepted(
            width=planned.width,
            height=planned.height,
            frame_rate=planned.frame_rate,
            codec=planned.request.codec,
            mime_type=mime_type,
            first_chunk_frames=self.capabilities.first_chunk_frames,
            chunk_frames=self.capabilities.chunk_frames,
            num_frames=planned.num_frames,
            default_transition_chunks=self.capabilities.default_transition_chunks,
            seed=planned.seed,
        )

    def _rules(self) -> InteractionRules:
        return InteractionRules(
            prompt_updates=self.capabilities.prompt_updates,
            default_transition_chunks=self.capabilities.default_transition_chunks,
            event_fields=self.capabilities.event_fields,
            max_waiting=self._limits.engine.waiting_interactions,
            retry_delay_ms=self._limits.engine.retry_delay_ms,
        )


def _encodable(declared: VideoCapabilities) -> VideoCapabilities:
    """Return `declared`. Raises ModelUnavailableError for chunks that no encoder takes."""
    most = max(declared.first_chunk_frames, declared.chunk_frames)
    if most > MAX_CHUNK_FRAMES:
        raise ModelUnavailableError(
            f"the adapter makes chunks of {most} frames; the encoder takes {MAX_CHUNK_FRAMES}"
        )
    return declared


async def _guarded(work: Awaitable[Value], refused: WeirError) -> Value:
    """Await a part of the preparation: a ValueError is `refused`, anything else INTERNAL."""
    try:
        return await work
    except WeirError:
        raise
    except ValueError as error:
        _log.info("generation_refused", error=error)
        raise refused from None
    except Exception as error:
        _log.error("preparation_failed", error=error)
        raise WeirError(INTERNAL) from None


def _refused(reason: Reason, field: str, rule: str) -> WeirError:
    return WeirError(
        failure(
            reason,
            f"The request is refused for: {field}.",
            code=GrpcCode.INVALID_ARGUMENT,
            violations=(FieldViolation(field, rule),),
        )
    )
