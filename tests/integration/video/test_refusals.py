"""What a client must not say, and what it is told."""

from __future__ import annotations

from typing import Any

import pytest
from weir.media.v1 import modality_pb2
from weir.video.v1 import video_pb2

from contracts.errors import Reason
from tests.integration.video.serving import (
    Viewer,
    failure_in,
    refusal_of,
    serving,
    viewing,
)
from tests.unit.video.support import (
    PATIENCE_S,
    config,
    control,
    credit,
    pattern,
)


async def test_a_call_must_send_its_config() -> None:
    """WEIR-239: in time, and before it half-closes."""
    async with serving(pattern(), CONFIG_S="0.1") as replica:
        call = replica.stub.StreamGenerate(timeout=PATIENCE_S)
        try:
            viewer = Viewer(call)
            with pytest.raises(Exception, match="no config in time"):
                await viewer.next()
        finally:
            call.cancel()
    async with serving(pattern()) as replica:
        call = replica.stub.StreamGenerate(timeout=PATIENCE_S)
        try:
            refused = await Viewer(call).end()
        finally:
            call.cancel()
        assert refused is not None
        assert refused.reason is Reason.INVALID_MESSAGE


UNSET = video_pb2.StreamGenerateRequest()
UNKNOWN = video_pb2.StreamGenerateRequest.FromString(b"\xa8\x1f\x07")

VIOLATIONS = [
    (config(), Reason.SESSION_STATE),
    (UNSET, Reason.INVALID_MESSAGE),
    (UNKNOWN, Reason.INVALID_MESSAGE),
    (credit(0), Reason.INVALID_MESSAGE),
    (control("playback", position_seconds=-1.0), Reason.INVALID_MESSAGE),
    (control("playback", position_seconds=float("nan")), Reason.INVALID_MESSAGE),
]


@pytest.mark.parametrize(("message", "reason"), VIOLATIONS)
async def test_a_message_that_breaks_the_protocol_ends_the_generation(
    message: Any, reason: Reason
) -> None:
    """WEIR-301, IO-INV-101: in-band and as status; a wrong interaction is another matter."""
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(endless=True)) as viewer,
    ):
        await viewer.send(message)
        failed = failure_in(await viewer.watch())
        assert failed is not None
        assert failed.reason is reason
        assert await viewer.end() == failed
        await replica.idle()


NO_CONFIG = [control("stop"), credit(), UNSET, UNKNOWN]


@pytest.mark.parametrize("first", NO_CONFIG)
async def test_a_call_begins_with_its_config(first: Any) -> None:
    """WEIR-301: anything else is refused, and no slot is taken."""
    async with serving(pattern()) as replica:
        refused = await refusal_of(replica.stub, first)
        assert refused.reason in (Reason.SESSION_STATE, Reason.INVALID_MESSAGE)
        assert replica.busy == 0


def wrong(**changes: Any) -> Any:
    """Return a config with these changes, None for a field that is cleared."""
    first = config()
    for path, value in changes.items():
        *outer, name = path.split("__")
        part = first.config
        for step in outer:
            part = getattr(part, step)
        if value is None:
            part.ClearField(name)
        else:
            setattr(part, name, value)
    return first


INVALID = [
    (wrong(identity=None), "config.identity"),
    (wrong(identity__session_id="a b"), "config.identity.session_id"),
    (wrong(identity__attempt=0), "config.identity.attempt"),
    (wrong(prompt=None), "config.prompt"),
    (wrong(prompt__text=" "), "config.prompt.text"),
    (wrong(prompt__modality=modality_pb2.MODALITY_VIDEO), "config.prompt.modality"),
    (wrong(output=None), "config.output.container"),
    (wrong(output__container=0), "config.output.container"),
    (wrong(output__width=64), "config.output.width"),
    (wrong(output__frame_rate_numerator=24), "config.output.frame_rate_denominator"),
    (wrong(num_frames=0), "config.num_frames"),
    (wrong(num_frames=3, endless=True), "config.endless"),
    (wrong(num_inference_steps=0), "config.num_inference_steps"),
    (wrong(guidance_scale=20.5), "config.guidance_scale"),
    (wrong(flow_shift=0.0), "config.flow_shift"),
    (wrong(boundary_ratio=float("nan")), "config.boundary_ratio"),
    (wrong(lead_seconds=31.0), "config.lead_seconds"),
    (wrong(initial_credits=0), "config.initial_credits"),
    (wrong(image_reference=b""), "config.image_reference"),
    (wrong(negative_prompt="x" * 4097), "config.negative_prompt"),
    (wrong(pace=9), "config.pace"),
    (wrong(output__codec=9), "config.output.codec"),
]


@pytest.mark.parametrize(("first", "field"), INVALID, ids=[field for _, field in INVALID])
async def test_a_config_that_is_wrong_names_the_field(first: Any, field: str) -> None:
    """WEIR-148, WEIR-301: INVALID_MESSAGE with the path of what is wrong."""
    async with serving(pattern()) as replica:
        refused = await refusal_of(replica.stub, first)
        assert refused.reason is Reason.INVALID_MESSAGE
        assert field in [violation.field for violation in refused.violations]
        assert replica.busy == 0
