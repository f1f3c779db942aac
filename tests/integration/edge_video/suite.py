"""The edge and its video replicas as real processes."""

from __future__ import annotations

from typing import Any

from tests.integration.edge.suite import launch_edge, metric, until_metric, until_ready
from tests.processes import READY_TIMEOUT_S, ServiceProcess, StartProcess

NOWHERE = "127.0.0.1:1"
"""An address where nothing listens."""


async def start_video(start: StartProcess, options: str = "", **env: str) -> ServiceProcess:
    """Start one replica with the pattern adapter and its options."""
    settings = {
        "VIDEO_ADAPTER": "pattern",
        "VIDEO_PORT": "0",
        "VIDEO_ADMIN_PORT": "0",
        "VIDEO_ADAPTER_OPTIONS": options,
        **env,
    }
    return await start("services.video", ready_timeout_s=READY_TIMEOUT_S, **settings)


async def start_video_edge(
    start: StartProcess, *replicas: ServiceProcess | str, **env: str
) -> ServiceProcess:
    """Start an edge for these video replicas and no speech; wait until it has found one."""
    targets = ",".join(r if isinstance(r, str) else r.address for r in replicas)
    edge = await launch_edge(start, NOWHERE, **{"EDGE_VIDEO_TARGETS": targets, **env})
    await until_ready(edge.address)
    return edge


async def chunks_made(replica: ServiceProcess) -> float:
    """Return how many chunks the model has made."""
    return await metric(replica, "weir_video_chunk_generation_seconds_count")


async def until_idle(replica: ServiceProcess, timeout_s: float = 20.0) -> None:
    """Wait until no generation holds a slot."""
    await until_metric(replica, "weir_video_busy_sessions", 0, timeout_s)


def existing_start(**fields: Any) -> dict[str, Any]:
    """Return the start message as existing clients send it, whatever model is served."""
    return {
        "type": "session.start",
        "model": "BestWishYsh/Helios-Distilled",
        "prompt": "A quiet street in the rain",
        "width": 640,
        "height": 384,
        "fps": 16,
        "num_frames": 99,
        "guidance_scale": 1.0,
        "seed": 42,
        "extra_params": {
            "is_enable_stage2": True,
            "pyramid_num_inference_steps_list": [2, 2, 2],
            "is_amplify_first_chunk": True,
        },
        **fields,
    }
